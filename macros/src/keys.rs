//! The keys of the attributes: where each may be written, what it takes, and the words in quotes that stand for its values.
//!
//! A new key is one entry in [`KEYS`], if it has the name of the builder's method that it becomes and
//! takes one of the kinds of values in [`Takes`]. Its errors and its call follow from the entry.

/// Where keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `#[supervisor(…)]` or `#[tree(…)]` above a struct.
    Supervisor,
    /// `#[child(…)]` above a field.
    Field,
    /// `#[supervisor(…)]` or `#[tree(…)]` above a field.
    Nested,
    /// `#[dynamic(…)]` above a field.
    Dynamic,
    /// `#[worker(…)]` above a function.
    Function,
    /// `#[worker(…)]` above an `impl` block.
    Block,
    /// `defaults(…)` of a supervisor: the options of its children.
    Defaults,
    /// `child(…)` of a supervisor: its own options as a child.
    Itself,
    /// `own_restarts(…)`: the limit of one child.
    Restarts,
    /// `#[on(…)]` above a method.
    Handler,
    /// `backoff(…)` with this curve.
    Backoff(&'static Curve),
}

use Place::{
    Backoff, Block, Defaults, Dynamic, Field, Function, Handler, Itself, Nested, Restarts,
    Supervisor,
};

impl Place {
    /// Returns the keys that are allowed here.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().chain(SETTINGS).filter(move |key| key.places.contains(&self))
    }

    /// Returns the key of this name, if it is allowed here.
    pub(crate) fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// A curve of `backoff(…)`. Its name is also the name of the constructor of `Backoff`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// The setting that is the first delay.
    pub(crate) first: Option<&'static str>,
    pub(crate) example: &'static str,
}

const fn curve(name: &'static str, first: Option<&'static str>, example: &'static str) -> Curve {
    Curve { name, first, example }
}

const EXPONENTIAL: Curve =
    curve("exponential", Some("min"), r#"backoff(exponential, min = "200ms", max = "30s")"#);
const LINEAR: Curve = curve("linear", Some("base"), r#"backoff(linear, base = "2s", max = "30s")"#);
const CONSTANT: Curve = curve("constant", Some("delay"), r#"backoff(constant, delay = "5s")"#);
const NONE: Curve = curve("none", None, "backoff(none)");

/// The curves in daily use. All others take an expression.
pub(crate) const CURVES: [&Curve; 4] = [&EXPONENTIAL, &LINEAR, &CONSTANT, &NONE];

/// A key: its name is also the name of the builder's method.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) places: &'static [Place],
    pub(crate) takes: Takes,
    /// A correct use, for errors.
    pub(crate) example: &'static str,
}

impl Key {
    /// Returns whether it is an option of a dynamic supervisor's child spec, and not of its builder.
    ///
    /// Limits are options of the builder. Those of the spec are written in `child(…)`.
    pub(crate) fn is_of_child(&self) -> bool {
        self.places.contains(&Field) && self.places != LIMITED
    }

    /// Returns whether it is about the runs of a periodic child.
    pub(crate) fn is_of_schedule(&self) -> bool {
        matches!(self.name, "every" | "cron" | "schedule")
    }

    /// Returns whether it is about a child's own configuration.
    pub(crate) fn is_of_config(&self) -> bool {
        self.places == CONFIGURED
    }
}

/// What a key takes.
#[derive(Debug)]
pub(crate) enum Takes {
    /// No value.
    Flag,
    /// A word in quotes, or an expression of the words' type.
    Word(&'static WordTable),
    /// A duration in quotes, or an expression of type `Duration`.
    Duration { zero: bool },
    /// A duration or a word in quotes, or an expression of the words' type.
    DurationOrWord(&'static WordTable),
    /// A whole number of at least `min`, or an expression.
    Number { min: u32 },
    /// A whole number of a type that the compiler checks, or an expression.
    SmallNumber,
    /// `true`, `false` or an expression.
    Boolean,
    /// A number from `min` to `max`, which may have a fraction, or an expression. The text describes the numbers.
    Fraction { min: f64, max: f64, what: &'static str },
    /// The name of a child, in quotes.
    Name,
    /// The names of siblings: one, or several in brackets.
    Names,
    /// `backoff(curve, …)`, or an expression of type `Backoff`.
    Backoff,
    /// More keys, in parentheses.
    Group(Place),
    /// A path to a crate.
    Path,
    /// A type.
    Type,
    /// A text in quotes, or an expression. The text names it in errors.
    Text(&'static str),
    /// The path of a section of a configuration, in quotes, or an expression.
    Section,
    /// Functions of an error: one, or several in brackets.
    Functions,
    /// An expression, whose type the compiler checks. The text names the type in errors.
    Expression(&'static str),
}

impl Takes {
    pub(crate) fn words(&self) -> Option<&'static WordTable> {
        match self {
            Self::Word(words) | Self::DurationOrWord(words) => Some(words),
            _ => None,
        }
    }
}

/// The words for the variants of one type.
#[derive(Debug)]
pub(crate) struct WordTable {
    /// The type's path in verger.
    pub(crate) ty: &'static str,
    /// What one of them is called in an error.
    pub(crate) noun: Option<&'static str>,
    pub(crate) words: &'static [&'static str],
    /// Those of the words that aren't named like their variant, each with the word that is.
    synonyms: &'static [(&'static str, &'static str)],
    /// An expression for the values that have no word.
    pub(crate) expression: Option<&'static str>,
}

impl WordTable {
    /// Returns the variant that a word stands for.
    pub(crate) fn variant(&self, word: &str) -> Option<String> {
        let word = self.words.iter().find(|known| **known == word)?;
        let synonym = self.synonyms.iter().find(|(synonym, _)| synonym == word);
        let name = synonym.map_or(word, |(_, name)| name);
        Some(name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect())
    }
}

const fn table(
    ty: &'static str,
    noun: Option<&'static str>,
    words: &'static [&'static str],
) -> WordTable {
    WordTable { ty, noun, words, synonyms: &[], expression: None }
}

const STRATEGY: WordTable =
    table("Strategy", Some("strategy"), &["one_for_one", "one_for_all", "rest_for_one"]);

#[rustfmt::skip]
const AUTO_SHUTDOWN: WordTable =
    table("policy::AutoShutdown", Some("auto-shutdown"), &["never", "any_significant", "all_significant"]);

const START: WordTable = table("policy::Start", None, &["sequential", "concurrent"]);

const FIRST_START: WordTable = table("policy::FirstStart", None, &["retry", "fail"]);

const ON_EXHAUSTED: WordTable = WordTable {
    expression: Some("OnExhausted::Pause(Duration::from_secs(15))"),
    ..table("policy::OnExhausted", None, &["escalate", "park", "stop_child"])
};

#[rustfmt::skip]
const RESTART: WordTable = WordTable {
    synonyms: &[("always", "permanent"), ("on_failure", "transient"), ("never", "temporary"), ("no", "temporary")],
    ..table("RestartType", Some("restart type"), &[
        "permanent", "transient", "temporary", "always", "on_failure", "never", "no",
        "on_stop", "on_success", "on_abnormal", "on_abort", "on_watchdog",
    ])
};

const SHUTDOWN: WordTable = table("Shutdown", Some("shutdown"), &["brutal_kill", "infinity"]);

const READINESS: WordTable = table("Readiness", Some("readiness"), &["on_start", "signal"]);

const ON_LEAK: WordTable = table("policy::OnLeak", None, &["restart", "park"]);

/// The places of options of one child.
const CHILD: &[Place] = &[Field, Nested, Dynamic, Function, Block, Itself];
/// The same, and the defaults for all children.
const CHILD_OR_DEFAULT: &[Place] = &[Field, Nested, Dynamic, Function, Block, Itself, Defaults];
/// The same, and a supervisor, where it is short for `defaults(…)`.
const CHILD_OR_SUPERVISOR: &[Place] =
    &[Field, Nested, Dynamic, Function, Block, Itself, Defaults, Supervisor];
const ANY_SUPERVISOR: &[Place] = &[Supervisor, Dynamic];
/// The places of options that a supervisor has for all children together, and a child for itself.
const LIMITED: &[Place] = &[Supervisor, Dynamic, Field, Nested, Function, Block, Itself, Defaults];
/// The places of a configuration, which supervisors have none of.
const CONFIGURED: &[Place] = &[Field, Function, Block];
const NAMED: &[Place] = &[Field, Nested, Supervisor, Dynamic, Function];
const OUTERMOST: &[Place] = &[Supervisor, Function, Block];

const FUNCTION: Takes = Takes::Expression("a function");
const FACTOR: Takes = Takes::Fraction { min: 1.0, max: f64::MAX, what: "a number of at least 1" };
const JITTER: Takes = Takes::Fraction {
    min: 0.0,
    max: 1.0,
    what: "a number from 0 to 1, or an expression like `Jitter::Full`",
};

const fn key(
    name: &'static str,
    places: &'static [Place],
    takes: Takes,
    example: &'static str,
) -> Key {
    Key { name, places, takes, example }
}

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    // Options of supervisors and of children.
    key("name", NAMED, Takes::Name, r#"name = "db""#),
    key("crate", OUTERMOST, Takes::Path, "crate = other::verger"),
    // Options of a supervisor.
    key("strategy", &[Supervisor], Takes::Word(&STRATEGY), r#"strategy = "rest_for_one""#),
    key("auto_shutdown", &[Supervisor], Takes::Word(&AUTO_SHUTDOWN), r#"auto_shutdown = "any_significant""#),
    key("start", &[Supervisor], Takes::Word(&START), r#"start = "concurrent""#),
    key("first_start", &[Supervisor], Takes::Word(&FIRST_START), r#"first_start = "fail""#),
    key("on_child_failure", ANY_SUPERVISOR, FUNCTION, "on_child_failure = Self::failed"),
    key("leak_timeout", ANY_SUPERVISOR, Takes::Duration { zero: false }, r#"leak_timeout = "1s""#),
    key("stop_deadline", ANY_SUPERVISOR, Takes::Duration { zero: true }, r#"stop_deadline = "30s""#),
    key("self_check", &[Supervisor], Takes::Boolean, "self_check = false"),
    key("busy_time", &[Supervisor], Takes::Boolean, "busy_time = true"),
    key("max_children", &[Dynamic], Takes::Number { min: 0 }, "max_children = 1000"),
    key("min_ready", &[Dynamic], Takes::Number { min: 0 }, "min_ready = 2"),
    key("preset", ANY_SUPERVISOR, Takes::Expression("a preset"), "preset = Preset::otp()"),
    key("defaults", ANY_SUPERVISOR, Takes::Group(Defaults), r#"defaults(shutdown = "20s")"#),
    key("child", ANY_SUPERVISOR, Takes::Group(Itself), r#"child(restart = "transient")"#),
    // Options of a child.
    key("restart", CHILD_OR_DEFAULT, Takes::Word(&RESTART), r#"restart = "transient""#),
    key("shutdown", CHILD_OR_DEFAULT, Takes::DurationOrWord(&SHUTDOWN), r#"shutdown = "20s""#),
    key("drain", CHILD_OR_DEFAULT, Takes::Duration { zero: true }, r#"drain = "10s""#),
    key("backoff", CHILD_OR_SUPERVISOR, Takes::Backoff, r#"backoff(exponential, min = "200ms", max = "30s")"#),
    key("significant", CHILD, Takes::Flag, "significant"),
    key("essential", CHILD, Takes::Boolean, "essential = false"),
    key("stop_order", CHILD, Takes::SmallNumber, "stop_order = 100"),
    key("requires", CHILD, Takes::Names, r#"requires = "db""#),
    key("readiness", CHILD, Takes::Word(&READINESS), r#"readiness = "signal""#),
    key("activation_timeout", CHILD_OR_DEFAULT, Takes::Duration { zero: false }, r#"activation_timeout = "10s""#),
    key("watchdog", CHILD_OR_DEFAULT, Takes::Duration { zero: false }, r#"watchdog = "30s""#),
    key("run_time_limit", CHILD_OR_DEFAULT, Takes::Duration { zero: false }, r#"run_time_limit = "5m""#),
    key("on_leak", CHILD_OR_DEFAULT, Takes::Word(&ON_LEAK), r#"on_leak = "park""#),
    key("restart_if", CHILD, Takes::Functions, "restart_if = |error: &io::Error| error.kind() == TimedOut"),
    key("leave_down_if", CHILD, Takes::Functions, "leave_down_if = |error: &io::Error| error.kind() == NotFound"),
    key("retry_after", CHILD_OR_DEFAULT, Takes::Functions, "retry_after = |error: &TooManyRequests| error.retry_after"),
    key("failure_log", CHILD_OR_DEFAULT, Takes::Expression("a failure log"), "failure_log = FailureLog::at(LogLevel::Info)"),
    // Limits of a supervisor and of a child.
    key("max_restarts", ANY_SUPERVISOR, Takes::Number { min: 0 }, "max_restarts = 5"),
    key("period", &[Supervisor, Dynamic, Restarts], Takes::Duration { zero: false }, r#"period = "60s""#),
    key("count_failed_starts", ANY_SUPERVISOR, Takes::Boolean, "count_failed_starts = true"),
    key("own_restarts", CHILD_OR_DEFAULT, Takes::Group(Restarts), r#"own_restarts(max = 12, period = "5m")"#),
    key("max", &[Restarts], Takes::Number { min: 0 }, "max = 12"),
    key("unlimited_restarts", LIMITED, Takes::Flag, "unlimited_restarts"),
    key("intensity", LIMITED, Takes::Expression("an intensity"), "intensity = Intensity::tumbling(5, Duration::from_secs(60))"),
    key("consecutive_restarts", CHILD_OR_DEFAULT, Takes::Number { min: 0 }, "consecutive_restarts = 3"),
    key("failing_for", CHILD_OR_DEFAULT, Takes::Duration { zero: false }, r#"failing_for = "10m""#),
    key("on_exhausted", LIMITED, Takes::Word(&ON_EXHAUSTED), r#"on_exhausted = "park""#),
    key("fallback", CHILD, Takes::Expression("a child spec"), "fallback = bestsellers()"),
    key("policy", CHILD_OR_DEFAULT, Takes::Expression("a restart policy"), "policy = self.policies.mqtt.clone()"),
    key("health_check", CHILD, Takes::Expression("a health check"), "health_check = HealthCheck::new(answers)"),
    key("lease", CHILD, Takes::Expression("a lease"), r#"lease = Lease::new("scheduler", engine)"#),
    // Options of a child's configuration.
    key("config", CONFIGURED, Takes::Type, "config = Settings"),
    key("config_section", CONFIGURED, Takes::Section, r#"config_section = "storage""#),
    key("validate", CONFIGURED, FUNCTION, "validate = Settings::check"),
    key("restart_on_change", CONFIGURED, Takes::Flag, "restart_on_change"),
    key("start_when_configured", CONFIGURED, Takes::Flag, "start_when_configured"),
    // Where a worker runs.
    key("blocking", &[Function, Block], Takes::Flag, "blocking"),
    key("local", &[Function], Takes::Flag, "local"),
    // The runs of a periodic child.
    key("every", &[Function], Takes::Duration { zero: false }, r#"every = "10s""#),
    key("cron", &[Function], Takes::Text("a cron expression"), r#"cron = "30 4 * * *""#),
    key("schedule", &[Function], FUNCTION, "schedule = |it| it.fail_after(3)"),
    // Options of a mailbox.
    key("capacity", &[Function, Handler], Takes::Number { min: 1 }, "capacity = 1000"),
    key("mailbox", &[Function], FUNCTION, "mailbox = |it| it.max_attempts(3)"),
    // Options of a handler of events.
    key("channel", &[Handler], Takes::Text("the name of a channel"), r#"channel = "orders""#),
    key("errors_fail_child", &[Handler], Takes::Flag, "errors_fail_child"),
];

/// The settings of a backoff, whose names mean something only there.
#[rustfmt::skip]
const SETTINGS: &[Key] = &[
    key("min", &[Backoff(&EXPONENTIAL)], Takes::Duration { zero: false }, r#"min = "5s""#),
    key("base", &[Backoff(&LINEAR)], Takes::Duration { zero: false }, r#"base = "5s""#),
    key("delay", &[Backoff(&CONSTANT)], Takes::Duration { zero: true }, r#"delay = "5s""#),
    key("max", &[Backoff(&EXPONENTIAL), Backoff(&LINEAR)], Takes::Duration { zero: false }, r#"max = "5s""#),
    key("factor", &[Backoff(&EXPONENTIAL)], FACTOR, "factor = 2.0"),
    key("jitter", &[Backoff(&EXPONENTIAL), Backoff(&LINEAR), Backoff(&CONSTANT)], JITTER, "jitter = 0.2"),
];

/// Returns the key that this name has in other places, where it may be meant.
pub(crate) fn elsewhere(place: Place, name: &str) -> Option<&'static Key> {
    match place {
        Backoff(_) | Handler => None,
        _ => KEYS.iter().find(|key| key.name == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_only_where_it_is_allowed() {
        assert!(Supervisor.key("strategy").is_some());
        assert!(Field.key("strategy").is_none());
        assert_eq!(elsewhere(Field, "strategy").unwrap().name, "strategy");
        assert!(elsewhere(Field, "stratgy").is_none());
    }

    #[test]
    fn no_key_is_in_the_table_twice() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }
}
