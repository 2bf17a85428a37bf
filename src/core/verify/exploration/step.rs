//! The steps of a script, and their text for a test of the
//! [simulation](crate::core::verify::simulation).
//!
//! Children have numbers here: a child that was removed and added again has the same number.

use std::time::Duration;

use crate::core::ChildRequest;
use crate::policy::{OnExhausted, Resolution, RestartPolicy, RestartType};

/// The unit of all explored times.
pub(super) const BEAT: Duration = Duration::from_millis(100);

/// A child, by its number in the plan.
pub(super) type ChildIndex = u8;

/// One event, or the passing of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExplorationStep {
    Ready(ChildIndex),
    Ignored(ChildIndex),
    Exited(ChildIndex, TaskExit),
    Healthy(ChildIndex),
    StopSelf(ChildIndex),
    /// The lease of the child is granted.
    Granted(ChildIndex),
    /// The lease of the child is lost.
    Lost(ChildIndex),
    /// The child acknowledges a message.
    Acked(ChildIndex),
    /// A message is pending for the child.
    MessagePending(ChildIndex),
    /// The health check of the child fails.
    Unhealthy(ChildIndex),
    /// The child that is asked for its last heartbeat has sent one now.
    Beats(ChildIndex),
    /// The child that is asked for its last heartbeat has sent none.
    Silent(ChildIndex),
    /// The child sets its own policy.
    Policy(ChildIndex, OwnPolicy),
    /// The failure callback decides on the child.
    Decide(ChildIndex, Resolution),
    Request(ChildIndex, ChildRequest),
    /// A child that does not exist is added and started.
    Add(ChildIndex),
    /// This many beats pass, without a tick.
    Pass(u8),
    /// The next deadline is due. A tick without a deadline, if there is none.
    Due,
    Stop {
        /// In a beat.
        hurried: bool,
    },
    /// The time for an ordered stop is over.
    Close {
        all: bool,
    },
    AbortAll,
}

/// A policy that a child sets for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnPolicy {
    /// A restart type.
    Type(RestartType),
    /// One restart in a row, then parked.
    Once,
}

impl OwnPolicy {
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
pub(super) enum TaskExit {
    Normal,
    Failed,
    Busy,
    Escalated,
    Exit,
    Shutdown,
    Aborted,
}

impl ExplorationStep {
    /// The step as source code of the simulation. `fakes` is the source code of the children.
    pub(super) fn script(self, fakes: &[String]) -> String {
        let child_event = |index, what| {
            let index = name(index);
            format!(
                "sim.child_event({index:?}, |key, incarnation| MachineEvent::{what} {{ key, incarnation }});"
            )
        };
        let ends = |index, how: &str| format!("sim.exit({:?}, {how});", name(index));
        match self {
            Self::Ready(index) => child_event(index, "Ready"),
            Self::Ignored(index) => child_event(index, "Ignored"),
            Self::Healthy(index) => child_event(index, "Healthy"),
            Self::StopSelf(index) => child_event(index, "StopSelf"),
            Self::Acked(index) => child_event(index, "Acked"),
            Self::Granted(index) => {
                format!(
                    "sim.event(MachineEvent::Condition(ConditionEvent::LeaseGranted {{ key: sim.key({:?}), changes: Properties::default() }}));",
                    name(index)
                )
            }
            Self::Lost(index) => {
                format!(
                    "sim.event(MachineEvent::Condition(ConditionEvent::LeaseLost {{ key: sim.key({:?}) }}));",
                    name(index)
                )
            }
            Self::MessagePending(index) => format!("sim.send({:?});", name(index)),
            Self::Unhealthy(index) => {
                let problem = "problem: Some(\"ill\".into())";
                let index = name(index);
                format!(
                    "sim.child_event({index:?}, |key, incarnation| \
                     MachineEvent::Condition(ConditionEvent::Health {{ key, incarnation, {problem} }}));"
                )
            }
            Self::Beats(index) | Self::Silent(index) => {
                let last = if let Self::Beats(_) = self { "Some(sim.now)" } else { "None" };
                format!("sim.answer_heartbeat({:?}, {last});", name(index))
            }
            Self::Policy(index, policy) => {
                let policy = policy.script();
                format!("sim.policy({:?}, RestartPolicy::new(){policy});", name(index))
            }
            Self::Decide(index, resolution) => {
                format!("sim.decide({:?}, Resolution::{resolution:?}.into());", name(index))
            }
            Self::Exited(index, TaskExit::Failed) => format!("sim.crash({:?});", name(index)),
            Self::Exited(index, TaskExit::Busy) => ends(index, "Script::Busy.reason()"),
            Self::Exited(index, TaskExit::Exit) => ends(index, "Script::Exit.reason()"),
            Self::Exited(index, TaskExit::Escalated) => ends(index, "Script::Escalate.reason()"),
            Self::Exited(index, end) => ends(index, &format!("ExitReason::{end:?}")),
            Self::Request(index, request) => {
                let request = match request {
                    ChildRequest::RESTART => "RESTART".to_owned(),
                    ChildRequest::RESUME => "RESUME".to_owned(),
                    ChildRequest::RESTART_CHILD => "RESTART_CHILD".to_owned(),
                    request => format!("{request:?}"),
                };
                format!("sim.request({:?}, ChildRequest::{request});", name(index))
            }
            Self::Add(index) => format!("sim.add({});", fakes[usize::from(index)]),
            Self::Pass(beats) => format!("sim.now += {};", time(BEAT * u32::from(beats))),
            Self::Due => "sim.due();".to_owned(),
            Self::Stop { hurried: false } => {
                "sim.event(MachineEvent::Stop { within: None });".to_owned()
            }
            Self::Stop { hurried: true } => {
                format!("sim.event(MachineEvent::Stop {{ within: Some({}) }});", time(BEAT))
            }
            Self::Close { all } => format!("sim.event(MachineEvent::Close {{ all: {all} }});"),
            Self::AbortAll => "sim.event(MachineEvent::AbortAll);".to_owned(),
        }
    }
}

pub(super) fn name(index: ChildIndex) -> &'static str {
    ["a", "b", "c"][usize::from(index)]
}

pub(super) fn time(time: Duration) -> String {
    format!("ms({})", time.as_millis())
}
