//! The keys there are, where each may stand, and what it takes.
//!
//! This is the one place where a key is added. A key that takes a value of one of the kinds below,
//! and is named like the builder's method that it becomes, is a single entry; everything else
//! about it (unknown words, wrong values, doubles, the call) follows.

use crate::words::{
    AUTO_SHUTDOWN, FIRST_START, ON_EXHAUSTED, ON_LEAK, PRESET, READINESS, RESTART, SHUTDOWN, START,
    STRATEGY, Words,
};

/// Where keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `#[supervisor(…)]` or `#[tree(…)]` above a struct.
    Supervisor,
    /// `#[child(…)]` or `#[supervisor(…)]` above a field.
    Field,
    /// `#[dynamic(…)]` above a field.
    Dynamic,
    /// `#[worker(…)]` above a function.
    Function,
    /// `#[worker(…)]` above an `impl` block.
    Block,
    /// `defaults(…)` of a supervisor: what its children get.
    Defaults,
    /// `child(…)` of a supervisor: how it is treated as a child itself.
    Itself,
}

use Place::{Block, Defaults, Dynamic, Field, Function, Itself, Supervisor};

impl Place {
    /// The keys that may stand here.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(move |key| key.places.contains(&self))
    }
}

/// A key, as it is written and as the builder's method is called.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) places: &'static [Place],
    pub(crate) takes: Takes,
    /// A correct use, for whoever wrote an incorrect one.
    pub(crate) example: &'static str,
}

impl Key {
    /// Whether it is said of a dynamic supervisor as a child, and not of its builder.
    ///
    /// Limits are said of the builder: as a child it has those that are written in `child(…)`.
    pub(crate) fn is_of_child(&self) -> bool {
        self.places.contains(&Field) && self.places != LIMITED
    }
}

/// What stands behind a key.
#[derive(Debug)]
pub(crate) enum Takes {
    /// Nothing.
    Flag,
    /// A word in quotes, or an expression of the words' type.
    Word(&'static Words),
    /// A duration in quotes, or an expression of type `Duration`.
    Duration { zero: bool },
    /// Either of these, in quotes, or an expression of the words' type.
    DurationOrWord(&'static Words),
    /// A whole number from this on, or an expression.
    Number { min: u32 },
    /// The name of a child.
    Name,
    /// Names of siblings: one, or several in brackets.
    Names,
    /// `backoff(curve, …)`, or an expression of type `Backoff`.
    Backoff,
    /// `intensity(kind, …)`, or an expression of type `Intensity`.
    Intensity,
    /// A word in quotes, something in parentheses, or an expression of type `OnExhausted`.
    OnExhausted,
    /// A level in quotes, `failure_log(…)`, or an expression of type `FailureLog`.
    FailureLog,
    /// The name of one in quotes, or an expression of type `Preset`.
    Preset,
    /// More keys, in parentheses.
    Group(Place),
    /// A path to a crate.
    Path,
    /// A function: a path to one, or a closure, checked by the compiler alone.
    Function,
    /// Functions of an error: one, or several in brackets.
    Questions,
    /// An expression, of what this says.
    Value(&'static str),
}

impl Takes {
    /// The words that may stand behind it.
    pub(crate) fn words(&self) -> Option<&'static Words> {
        match self {
            Self::Word(words) | Self::DurationOrWord(words) => Some(words),
            Self::OnExhausted => Some(&ON_EXHAUSTED),
            Self::Preset => Some(&PRESET),
            Self::Flag
            | Self::Duration { .. }
            | Self::Number { .. }
            | Self::Name
            | Self::Names
            | Self::Backoff
            | Self::Intensity
            | Self::FailureLog
            | Self::Group(_)
            | Self::Path
            | Self::Function
            | Self::Questions
            | Self::Value(_) => None,
        }
    }
}

/// Who has a child spec that options of a child can be set on.
const CHILD: &[Place] = &[Field, Dynamic, Function, Block, Itself];
/// The same, and the defaults for all children.
const CHILD_OR_DEFAULT: &[Place] = &[Field, Dynamic, Function, Block, Itself, Defaults];
const ANY_SUPERVISOR: &[Place] = &[Supervisor, Dynamic];
/// Who may fail too often: all children together, or one of them.
const LIMITED: &[Place] = &[Supervisor, Dynamic, Field, Function, Block, Itself, Defaults];

pub(crate) const KEYS: &[Key] = &[
    // Options of both kinds of child and supervisor.
    Key {
        name: "name",
        places: &[Field, Supervisor, Dynamic, Function],
        takes: Takes::Name,
        example: r#"name = "db""#,
    },
    Key {
        name: "crate",
        places: &[Supervisor, Function, Block],
        takes: Takes::Path,
        example: "crate = other::verger",
    },
    // Options of a supervisor.
    Key {
        name: "strategy",
        places: &[Supervisor],
        takes: Takes::Word(&STRATEGY),
        example: r#"strategy = "rest_for_one""#,
    },
    Key {
        name: "unlimited_restarts",
        places: ANY_SUPERVISOR,
        takes: Takes::Flag,
        example: "unlimited_restarts",
    },
    Key {
        name: "auto_shutdown",
        places: &[Supervisor],
        takes: Takes::Word(&AUTO_SHUTDOWN),
        example: r#"auto_shutdown = "any_significant""#,
    },
    Key {
        name: "start",
        places: &[Supervisor],
        takes: Takes::Word(&START),
        example: r#"start = "concurrent""#,
    },
    Key {
        name: "first_start",
        places: &[Supervisor],
        takes: Takes::Word(&FIRST_START),
        example: r#"first_start = "fail""#,
    },
    Key {
        name: "on_child_failure",
        places: ANY_SUPERVISOR,
        takes: Takes::Function,
        example: "on_child_failure = Self::failed",
    },
    Key {
        name: "leak_timeout",
        places: ANY_SUPERVISOR,
        takes: Takes::Duration { zero: false },
        example: r#"leak_timeout = "1s""#,
    },
    Key {
        name: "stop_deadline",
        places: ANY_SUPERVISOR,
        takes: Takes::Duration { zero: true },
        example: r#"stop_deadline = "30s""#,
    },
    Key {
        name: "max_children",
        places: &[Dynamic],
        takes: Takes::Number { min: 0 },
        example: "max_children = 1000",
    },
    Key {
        name: "preset",
        places: ANY_SUPERVISOR,
        takes: Takes::Preset,
        example: r#"preset = "otp""#,
    },
    Key {
        name: "defaults",
        places: ANY_SUPERVISOR,
        takes: Takes::Group(Defaults),
        example: r#"defaults(shutdown = "20s")"#,
    },
    Key {
        name: "child",
        places: ANY_SUPERVISOR,
        takes: Takes::Group(Itself),
        example: r#"child(restart = "transient")"#,
    },
    // Options of a child.
    Key {
        name: "restart",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Word(&RESTART),
        example: r#"restart = "transient""#,
    },
    Key {
        name: "shutdown",
        places: CHILD_OR_DEFAULT,
        takes: Takes::DurationOrWord(&SHUTDOWN),
        example: r#"shutdown = "20s""#,
    },
    Key {
        name: "backoff",
        // Above a supervisor it is short for `defaults(backoff(…))`.
        places: &[Field, Dynamic, Function, Block, Itself, Defaults, Supervisor],
        takes: Takes::Backoff,
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Key { name: "significant", places: CHILD, takes: Takes::Flag, example: "significant" },
    Key { name: "requires", places: CHILD, takes: Takes::Names, example: r#"requires = "db""# },
    Key {
        name: "readiness",
        places: CHILD,
        takes: Takes::Word(&READINESS),
        example: r#"readiness = "signal""#,
    },
    Key {
        name: "activation_timeout",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Duration { zero: false },
        example: r#"activation_timeout = "10s""#,
    },
    Key {
        name: "on_leak",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Word(&ON_LEAK),
        example: r#"on_leak = "park""#,
    },
    Key {
        name: "restart_if",
        places: CHILD,
        takes: Takes::Questions,
        example: "restart_if = |error: &io::Error| error.kind() == TimedOut",
    },
    Key {
        name: "stop_if",
        places: CHILD,
        takes: Takes::Questions,
        example: "stop_if = |error: &io::Error| error.kind() == NotFound",
    },
    Key {
        name: "retry_after",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Questions,
        example: "retry_after = |error: &TooManyRequests| error.retry_after",
    },
    Key {
        name: "failure_log",
        places: CHILD_OR_DEFAULT,
        takes: Takes::FailureLog,
        example: r#"failure_log = "info""#,
    },
    // Limits, of a supervisor and of a child, and what follows.
    Key {
        name: "max_restarts",
        places: LIMITED,
        takes: Takes::Number { min: 0 },
        example: "max_restarts = 5",
    },
    Key {
        name: "period",
        places: LIMITED,
        takes: Takes::Duration { zero: false },
        example: r#"period = "60s""#,
    },
    Key {
        name: "intensity",
        places: LIMITED,
        takes: Takes::Intensity,
        example: r#"intensity(tumbling, max = 5, period = "60s")"#,
    },
    Key {
        name: "consecutive_restarts",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Number { min: 0 },
        example: "consecutive_restarts = 3",
    },
    Key {
        name: "failing_for",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Duration { zero: false },
        example: r#"failing_for = "10m""#,
    },
    Key {
        name: "on_exhausted",
        places: LIMITED,
        takes: Takes::OnExhausted,
        example: r#"on_exhausted = "park""#,
    },
    Key {
        name: "fallback",
        places: CHILD,
        takes: Takes::Value("a child spec"),
        example: "fallback = bestsellers()",
    },
    Key {
        name: "policy",
        places: CHILD_OR_DEFAULT,
        takes: Takes::Value("a restart policy"),
        example: "policy = self.policies.mqtt.clone()",
    },
    Key {
        name: "health_check",
        places: CHILD,
        takes: Takes::Value("a health check"),
        example: "health_check = HealthCheck::new(answers)",
    },
    // Options of a mailbox.
    Key {
        name: "capacity",
        places: &[Function],
        takes: Takes::Number { min: 1 },
        example: "capacity = 1000",
    },
    Key {
        name: "mailbox",
        places: &[Function],
        takes: Takes::Function,
        example: "mailbox = |it| it.max_attempts(3)",
    },
];

/// Whether there is a key of some name in some place.
pub(crate) enum Found {
    Here(&'static Key),
    /// In other places only.
    Elsewhere(&'static Key),
    Nowhere,
}

pub(crate) fn find(place: Place, name: &str) -> Found {
    match KEYS.iter().find(|key| key.name == name) {
        Some(key) if key.places.contains(&place) => Found::Here(key),
        Some(key) => Found::Elsewhere(key),
        None => Found::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_only_where_it_may_stand() {
        assert!(matches!(find(Supervisor, "strategy"), Found::Here(key) if key.name == "strategy"));
        assert!(matches!(find(Field, "strategy"), Found::Elsewhere(_)));
        assert!(matches!(find(Supervisor, "stratgy"), Found::Nowhere));
    }

    #[test]
    fn no_key_stands_twice_in_the_table() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }
}
