//! What can happen next to a machine, and how it is written down so that the
//! [simulator](super::super::super::simulator) can be told the same.
//!
//! Children are named by number here: a child that was forgotten and added again is the same one.

use std::time::Duration;

use super::super::super::ChildRequest;
use crate::failure::Resolution;
use crate::policy::{OnExhausted, RestartPolicy, RestartType};

/// The unit of all times that are explored.
pub(super) const BEAT: Duration = Duration::from_millis(100);

/// Which child, by its number in the plan.
pub(super) type Who = u8;

/// One event, or time that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Ready(Who),
    Ignored(Who),
    Exited(Who, End),
    Healthy(Who),
    StopSelf(Who),
    /// The child acknowledges a message.
    Acked(Who),
    /// A message waits for the child.
    Wanted(Who),
    /// It is said what is wrong with the child.
    Unhealthy(Who),
    /// The child says what is to become of it.
    Policy(Who, Word),
    /// What becomes of a child that has failed is answered.
    ChildAnswer(Who, Resolution),
    Ask(Who, ChildRequest),
    /// A child that is not there is added and started.
    Add(Who),
    /// So many beats pass, and nobody looks at the clock yet.
    Pass(u8),
    /// The next deadline comes. If there is none, a tick that nobody asked for.
    Due,
    Stop {
        /// In a beat.
        hurried: bool,
    },
    AbortAll,
}

/// What a child says of its restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Of what type it wants to be.
    Type(RestartType),
    /// It may be restarted once in a row, and is parked otherwise.
    Once,
}

impl Word {
    pub(super) fn policy(self) -> RestartPolicy {
        match self {
            Self::Type(restart) => RestartPolicy::new().restart(restart),
            Self::Once => {
                RestartPolicy::new().consecutive_restarts(1).on_exhausted(OnExhausted::Park)
            }
        }
    }

    fn script(self) -> String {
        match self {
            Self::Type(restart) => format!(".restart(RestartType::{restart:?})"),
            Self::Once => ".consecutive_restarts(1).on_exhausted(OnExhausted::Park)".to_owned(),
        }
    }
}

/// How a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Normal,
    Failed,
    Busy,
    Escalated,
    Exit,
    Shutdown,
    Aborted,
}

impl Step {
    /// The same in the words of the simulator. `kids` are the children in its words.
    pub(super) fn script(self, kids: &[String]) -> String {
        let says = |who, what| {
            let who = name(who);
            format!(
                "world.says({who:?}, |key, incarnation| MachineEvent::{what} {{ key, incarnation }});"
            )
        };
        let ends = |who, how: &str| format!("world.exit({:?}, {how});", name(who));
        match self {
            Self::Ready(who) => says(who, "Ready"),
            Self::Ignored(who) => says(who, "Ignored"),
            Self::Healthy(who) => says(who, "Healthy"),
            Self::StopSelf(who) => says(who, "StopSelf"),
            Self::Acked(who) => says(who, "Acked"),
            Self::Wanted(who) => format!("world.send({:?});", name(who)),
            Self::Unhealthy(who) => {
                let problem = "problem: Some(\"ill\".into())";
                let who = name(who);
                format!(
                    "world.says({who:?}, |key, incarnation| \
                     MachineEvent::Health {{ key, incarnation, {problem} }});"
                )
            }
            Self::Policy(who, word) => {
                let word = word.script();
                format!("world.policy({:?}, RestartPolicy::new(){word});", name(who))
            }
            Self::ChildAnswer(who, resolution) => {
                format!("world.decide({:?}, Resolution::{resolution:?}.into());", name(who))
            }
            Self::Exited(who, End::Failed) => format!("world.crash({:?});", name(who)),
            Self::Exited(who, End::Busy) => ends(who, "Play::Busy.reason()"),
            Self::Exited(who, End::Exit) => ends(who, "Play::Exit.reason()"),
            Self::Exited(who, End::Escalated) => ends(who, "Play::Escalate.reason()"),
            Self::Exited(who, end) => ends(who, &format!("ExitReason::{end:?}")),
            Self::Ask(who, request) => {
                format!("world.ask({:?}, ChildRequest::{request:?});", name(who))
            }
            Self::Add(who) => format!("world.add({});", kids[usize::from(who)]),
            Self::Pass(beats) => format!("world.now += {};", time(BEAT * u32::from(beats))),
            Self::Due => "world.due();".to_owned(),
            Self::Stop { hurried: false } => {
                "world.event(MachineEvent::Stop { within: None });".to_owned()
            }
            Self::Stop { hurried: true } => {
                format!("world.event(MachineEvent::Stop {{ within: Some({}) }});", time(BEAT))
            }
            Self::AbortAll => "world.event(MachineEvent::AbortAll);".to_owned(),
        }
    }
}

pub(super) fn name(who: Who) -> &'static str {
    ["a", "b", "c"][usize::from(who)]
}

pub(super) fn time(time: Duration) -> String {
    format!("ms({})", time.as_millis())
}
