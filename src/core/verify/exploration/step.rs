//! The steps of a script, and their text for a test of the
//! [simulation](crate::core::verify::simulation).
//!
//! Children have numbers here: a child that was removed and added again has the same number.

use std::time::Duration;

use crate::core::ChildRequest;
use crate::policy::Resolution;
use crate::policy::{OnExhausted, RestartPolicy, RestartType};

/// The unit of all explored times.
pub(super) const BEAT: Duration = Duration::from_millis(100);

/// A child, by its number in the plan.
pub(super) type Who = u8;

/// One event, or the passing of time.
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
    /// The health check of the child fails.
    Unhealthy(Who),
    /// The child sets its own policy.
    Policy(Who, Word),
    /// The failure callback decides on the child.
    ChildAnswer(Who, Resolution),
    Ask(Who, ChildRequest),
    /// A child that does not exist is added and started.
    Add(Who),
    /// This many beats pass, without a tick.
    Pass(u8),
    /// The next deadline is due. A tick without a deadline, if there is none.
    Due,
    Stop {
        /// In a beat.
        hurried: bool,
    },
    AbortAll,
}

/// A policy that a child sets for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A restart type.
    Type(RestartType),
    /// One restart in a row, then parked.
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
    /// The step as source code of the simulation. `fakes` is the source code of the children.
    pub(super) fn script(self, fakes: &[String]) -> String {
        let says = |who, what| {
            let who = name(who);
            format!(
                "sim.says({who:?}, |key, incarnation| MachineEvent::{what} {{ key, incarnation }});"
            )
        };
        let ends = |who, how: &str| format!("sim.exit({:?}, {how});", name(who));
        match self {
            Self::Ready(who) => says(who, "Ready"),
            Self::Ignored(who) => says(who, "Ignored"),
            Self::Healthy(who) => says(who, "Healthy"),
            Self::StopSelf(who) => says(who, "StopSelf"),
            Self::Acked(who) => says(who, "Acked"),
            Self::Wanted(who) => format!("sim.send({:?});", name(who)),
            Self::Unhealthy(who) => {
                let problem = "problem: Some(\"ill\".into())";
                let who = name(who);
                format!(
                    "sim.says({who:?}, |key, incarnation| \
                     MachineEvent::Health {{ key, incarnation, {problem} }});"
                )
            }
            Self::Policy(who, word) => {
                let word = word.script();
                format!("sim.policy({:?}, RestartPolicy::new(){word});", name(who))
            }
            Self::ChildAnswer(who, resolution) => {
                format!("sim.decide({:?}, Resolution::{resolution:?}.into());", name(who))
            }
            Self::Exited(who, End::Failed) => format!("sim.crash({:?});", name(who)),
            Self::Exited(who, End::Busy) => ends(who, "Script::Busy.reason()"),
            Self::Exited(who, End::Exit) => ends(who, "Script::Exit.reason()"),
            Self::Exited(who, End::Escalated) => ends(who, "Script::Escalate.reason()"),
            Self::Exited(who, end) => ends(who, &format!("ExitReason::{end:?}")),
            Self::Ask(who, request) => {
                format!("sim.ask({:?}, ChildRequest::{request:?});", name(who))
            }
            Self::Add(who) => format!("sim.add({});", fakes[usize::from(who)]),
            Self::Pass(beats) => format!("sim.now += {};", time(BEAT * u32::from(beats))),
            Self::Due => "sim.due();".to_owned(),
            Self::Stop { hurried: false } => {
                "sim.event(MachineEvent::Stop { within: None });".to_owned()
            }
            Self::Stop { hurried: true } => {
                format!("sim.event(MachineEvent::Stop {{ within: Some({}) }});", time(BEAT))
            }
            Self::AbortAll => "sim.event(MachineEvent::AbortAll);".to_owned(),
        }
    }
}

pub(super) fn name(who: Who) -> &'static str {
    ["a", "b", "c"][usize::from(who)]
}

pub(super) fn time(time: Duration) -> String {
    format!("ms({})", time.as_millis())
}
