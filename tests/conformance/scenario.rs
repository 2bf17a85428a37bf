//! Scenarios: a tree and the steps that are applied to it, as values with a JSON form.
//!
//! A scenario contains neither expectations nor a system that runs it. Its words are those of both
//! systems; where these differ, they are translated as follows:
//!
//! | here | Erlang/OTP | verger |
//! | --- | --- | --- |
//! | `normal`, `shutdown`, `stop_self` | the exits `normal`, `shutdown`, `{shutdown, _}` | `Ok`, `Ok`, `stop_self()` |
//! | `error`, `panic` | two other exits | an error, a panic |
//! | `simple_one_for_one` | the strategy, with a template | a dynamic supervisor, started with equal specs |
//! | kill | `exit(Pid, kill)` | `kill` |
//! | stop | `gen_server:stop(Pid, shutdown, infinity)` | `stop` |
//!
//! A name begins with its kind: `s` is a supervisor, `d` a dynamic supervisor, `w` a worker. The
//! root is `s`, and a path begins with it. Names below a dynamic supervisor are used once.

use serde::{Deserialize, Serialize};

/// A tree, and the steps that are applied to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) tree: Sup,
    /// The results of children's next starts, including the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) starts: Vec<(String, Vec<Outcome>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow_start: Option<SlowStart>,
    pub(crate) steps: Vec<Step>,
}

/// The first start of a worker that takes so long that a sibling ends meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SlowStart {
    pub(crate) worker: String,
    pub(crate) sibling: String,
    pub(crate) end: End,
}

/// A supervisor. Its period is an hour, which never passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sup {
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) strategy: Strategy,
    pub(crate) intensity: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) auto_shutdown: Auto,
    /// With `simple_one_for_one`: the template alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Spec>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) restart: Restart,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) significant: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) shutdown: Grace,
    /// Without a supervisor, it is a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sup: Option<Sup>,
}

/// Declares an enum whose JSON and Erlang forms are the same words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) enum $name {
            #[default]
            $(#[serde(rename = $word)] $variant),+
        }

        impl $name {
            pub(crate) const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}

words!(Strategy:
    OneForOne = "one_for_one", OneForAll = "one_for_all", RestForOne = "rest_for_one",
    SimpleOneForOne = "simple_one_for_one");
words!(Auto: Never = "never", Any = "any_significant", All = "all_significant");
words!(Restart: Permanent = "permanent", Transient = "transient", Temporary = "temporary");
words!(
    /// The grace of a child. No child takes any time to stop.
    Grace: Default = "default", Timeout = "3600000", Infinity = "infinity", Brutal = "brutal_kill");
words!(
    /// The result of a start.
    Outcome: Ok = "ok", Error = "error", Panic = "panic", Ignore = "ignore");
words!(
    /// How a child ends by itself.
    End: Normal = "normal", Shutdown = "shutdown", StopSelf = "stop_self", Error = "error",
    Panic = "panic");

/// One step. The child that it names may not exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Starts the whole tree again, if it has ended.
    Start,
    /// Sets the results of a worker's next starts; later starts succeed.
    NextStarts(String, Vec<Outcome>),
    /// Workers of one supervisor end, in this order, before it processes the first exit.
    Ends(Vec<(String, End)>),
    Kill(String),
    Stop(String),
    StartChild(String, Spec),
    /// A child of a dynamic supervisor, by its path.
    StartDynamic(String),
    TerminateChild(String),
    RestartChild(String),
    DeleteChild(String),
    ChildSpec(String),
    WhichChildren(String),
    CountChildren(String),
}

impl Scenario {
    /// Returns the strategy of a supervisor that is in the tree, or is added to it.
    pub(crate) fn strategy(&self, path: &str) -> Option<Strategy> {
        fn below(sup: &Sup, at: &str, path: &str) -> Option<Strategy> {
            if at == path {
                return Some(sup.strategy);
            }
            let rest = path.strip_prefix(at)?.strip_prefix('/')?;
            let name = rest.split('/').next()?;
            let dynamic = sup.strategy == Strategy::SimpleOneForOne;
            let child = sup.children.iter().find(|child| dynamic || child.id == name)?;
            below(child.sup.as_ref()?, &join(at, name), path)
        }
        let mut added = self.steps.iter().filter_map(|step| match step {
            Step::StartChild(parent, Spec { id, sup: Some(sup), .. }) => {
                below(sup, &join(parent, id), path)
            }
            _ => None,
        });
        below(&self.tree, "s", path).or_else(|| added.next_back())
    }
}

impl Step {
    /// Returns the path that the step is about.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Start => "s",
            Self::Ends(ends) => ends.first().map_or("", |(path, _)| path),
            Self::NextStarts(path, _)
            | Self::StartChild(path, _)
            | Self::Kill(path)
            | Self::Stop(path)
            | Self::StartDynamic(path)
            | Self::TerminateChild(path)
            | Self::RestartChild(path)
            | Self::DeleteChild(path)
            | Self::ChildSpec(path)
            | Self::WhichChildren(path)
            | Self::CountChildren(path) => path,
        }
    }
}

/// Returns the path of the supervisor, and the name of the child below it.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub(crate) fn join(parent: &str, name: &str) -> String {
    format!("{parent}/{name}")
}

/// Returns whether a path is that of a dynamic supervisor.
pub(crate) fn is_dynamic(path: &str) -> bool {
    split(path).1.starts_with('d')
}

/// Returns whether a path is that of a worker.
pub(crate) fn is_worker(path: &str) -> bool {
    split(path).1.starts_with('w')
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
