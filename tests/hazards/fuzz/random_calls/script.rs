//! Scripts: a tree, how its children end, and calls.

use arbitrary::Arbitrary;
use verger::policy::OnExhausted;

use super::MOST_CALLS;

#[derive(Arbitrary, Debug)]
pub(super) struct Script {
    pub(super) root: SupervisorPlan,
    pub(super) nest: SupervisorPlan,
    pub(super) nest_is_dynamic: bool,
    pub(super) nest_is_first: bool,
    pub(super) children: Vec<ChildPlan>,
    pub(super) nested: Vec<ChildPlan>,
    pub(super) callers: Vec<Vec<CallPlan>>,
    /// The tree is stopped while the callers call.
    pub(super) stops_early: bool,
    /// Two callers stop the tree.
    pub(super) stops_twice: bool,
}

#[derive(Arbitrary, Clone, Debug)]
pub(super) struct SupervisorPlan {
    pub(super) strategy: u8,
    pub(super) max_restarts: u8,
    pub(super) on_exhausted: u8,
    pub(super) concurrent: bool,
    pub(super) auto_shutdown: bool,
}

#[derive(Arbitrary, Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) restart: u8,
    pub(super) signals: bool,
    pub(super) backs_off: bool,
    pub(super) shutdown: u8,
    pub(super) significant: bool,
    /// The limit of consecutive restarts and of restarts within the period.
    pub(super) max_restarts: Option<u8>,
    pub(super) requires_first: bool,
    pub(super) lives: [Life; 3],
}

/// What an incarnation does. Later ones than those of the plan run until they are cancelled.
#[derive(Arbitrary, Clone, Debug)]
pub(super) struct Life {
    pub(super) yields: u8,
    pub(super) ready: bool,
    /// A call that the child itself makes.
    pub(super) call: Option<Call>,
    pub(super) end: End,
    pub(super) panics_on_drop: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Idle,
    Fail,
    Panic,
    Finish,
    Decline,
    StopSelf,
    /// Ignores its cancellation, unless its grace is endless.
    Deaf,
    /// Fails when it is cancelled.
    FailLate,
}

#[derive(Arbitrary, Clone, Debug)]
pub(super) struct CallPlan {
    pub(super) yields: u8,
    pub(super) call: Call,
    /// The future of the call is dropped after so many polls.
    pub(super) polls: Option<u8>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Call {
    Start(u8, bool),
    Terminate(u8),
    RestartStopped(u8),
    Restart(u8),
    Kill(u8),
    Delete(u8),
    Resume(u8),
    Which(u8),
    WhichAll(bool),
    Count(bool),
    Spec(u8),
    Status,
    Supervisor,
    StopNest,
}

impl Script {
    /// Returns the paths that calls can name. Those of dynamic children are guesses.
    pub(super) fn target(&self, target: u8) -> String {
        let nested = if self.nest_is_dynamic { MOST_CALLS } else { self.nested.len() };
        let names = self.children.len() + 1 + nested + 1;
        let index = usize::from(target) % names;
        let Some(index) = index.checked_sub(self.children.len()) else {
            return format!("c{index}");
        };
        match index.checked_sub(1) {
            None => "nest".to_owned(),
            Some(at) if at == nested => "unknown".to_owned(),
            Some(at) if self.nest_is_dynamic => {
                format!("nest/n{}#{}", at % self.nested.len().max(1), at + 1)
            }
            Some(at) => format!("nest/n{at}"),
        }
    }

    /// Whether a call may clear the windows of the limits.
    pub(super) fn retries(&self) -> bool {
        let calls = self.callers.iter().flatten().map(|plan| plan.call);
        let plans = self.children.iter().chain(&self.nested);
        let own = plans.flat_map(|plan| plan.lives.iter().filter_map(|life| life.call));
        calls.chain(own).any(|call| matches!(call, Call::Resume(_) | Call::Restart(_)))
    }
}

impl SupervisorPlan {
    pub(super) fn max_restarts(&self) -> u32 {
        u32::from(self.max_restarts % 8)
    }

    pub(super) fn on_exhausted(&self) -> OnExhausted {
        match self.on_exhausted % 4 {
            0 | 1 => OnExhausted::Escalate,
            2 => OnExhausted::Park,
            _ => OnExhausted::StopChild,
        }
    }
}

impl ChildPlan {
    pub(super) fn is_endless(&self) -> bool {
        self.shutdown % 4 == 3
    }
}
