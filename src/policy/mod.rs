//! The policies of a tree, as values: who is restarted, when, how often, and how it is stopped.
//!
//! Everything here is plain data with total functions over it. Nothing knows tokio, a task or a
//! clock; instants and random numbers are arguments. What a policy leads to is up to the machine.

mod backoff;
mod causes;
mod circuit;
mod dead_letter_log;
mod duration;
mod effective;
mod failure_log;
mod health;
mod instant;
mod intensity;
mod limits;
mod options;
mod preset;
mod random;
mod reach;
mod restart;
mod restart_policy;
mod retry_after;
mod shutdown;
mod start;
mod strategy;
mod trigger;
mod window;
mod word;
mod written;

pub(crate) use self::backoff::Place;
pub use self::backoff::{Backoff, BackoffProblem, BinarySlots, Curve, Delays, Jitter, Reset};
pub use self::dead_letter_log::DeadLetterLog;
pub(crate) use self::dead_letter_log::{LetterLine, Throttle};
pub use self::effective::{Effective, EffectivePolicy, PolicySource, PolicySources};
pub use self::failure_log::{FailureLog, LogLevel};
pub use self::intensity::Intensity;
pub use self::limits::{OnExhausted, OnLeak};
pub use self::preset::Preset;
pub use self::random::Random;
pub(crate) use self::random::{Dice, Sources};
pub use self::restart::RestartType;
pub use self::restart_policy::RestartPolicy;
pub use self::shutdown::{Shutdown, UnknownShutdown};
pub use self::start::{FirstStart, Readiness, Start, StartCause};
pub use self::strategy::{AutoShutdown, Strategy};
pub use self::trigger::{OnExit, Trigger};

pub use self::circuit::CircuitState;
pub(crate) use self::circuit::{Change, Circuit, Permit};
pub(crate) use self::health::{Pulse, Rhythm};
pub(crate) use self::instant::later;
pub(crate) use self::limits::{Limits, SetTwice, WrittenLimits, set};
pub(crate) use self::options::{ChildOptions, Rules};
pub(crate) use self::reach::{Unreachable, unreachable};
pub(crate) use self::retry_after::AskedWaits;
pub(crate) use self::trigger::Exceptions;
pub(crate) use self::window::RestartWindow;
pub use self::word::UnknownWord;
pub(crate) use self::word::spelled;
