//! What a supervisor waits for while it starts or stops children in a group.
//!
//! Decides nothing: it only looks, for log lines about operations that take long.

use std::time::{Duration, Instant};

use super::{ChildState, Children, Dynamic, GroupPhase, Key, Machine, Ordered, Timer, each};
use crate::policy::Shutdown;

/// How many children are looked at.
const LOOKED_AT: usize = 1024;

/// An operation that concerns several children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Stop,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// The child has to be ready.
    Readiness,
    /// The child lacks a requirement, which this child provides.
    Requirement(Option<Key>),
    /// The child is started again after this time.
    Restart(Duration),
    /// The failure callback has to decide on the child.
    Decision,
    /// The child was cancelled. `None`: it has no grace that ends.
    Stop { left: Option<Duration> },
    /// The child was aborted.
    Abort,
}

impl Machine {
    /// Returns the operation that is under way.
    pub(crate) fn operation(&self) -> Option<Operation> {
        match self {
            Self::Ordered(ordered) => match ordered.group.as_ref()?.phase {
                GroupPhase::Stopping { .. } => Some(Operation::Stop),
                GroupPhase::Waiting => None,
                GroupPhase::Starting { .. } => Some(Operation::Start),
            },
            Self::Dynamic(dynamic) => dynamic.is_finishing().then_some(Operation::Stop),
        }
    }

    /// Returns what the operation waits for, at most `max` children.
    pub(crate) fn waits(&self, now: Instant, max: usize) -> Vec<(Key, WaitReason)> {
        let reason = |key| Some((key, self.children().wait_reason(key, now)?));
        each!(self, kind => kind.awaited()).filter_map(reason).take(max).collect()
    }
}

impl Ordered {
    /// Returns the children that the group operation may wait for, in the order in which it comes to them.
    fn awaited(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self.group.as_ref().map(|op| op.phase) {
            Some(GroupPhase::Stopping { .. }) => {
                let before = |&(pos, _): &(_, Key)| self.order.last_before(pos);
                let keys = std::iter::successors(self.order.last_before(self.next_pos), before);
                let is_stopping =
                    |key| matches!(self.children.state(key), Some(ChildState::Stopping { .. }));
                Box::new(
                    keys.take(LOOKED_AT).map(|(_, key)| key).filter(move |&key| is_stopping(key)),
                )
            }
            Some(GroupPhase::Starting { cursor, .. }) => {
                let behind = |&(pos, _): &(_, Key)| self.order.first_from(pos + 1);
                let keys = std::iter::successors(self.order.first_from(cursor), behind);
                let keys = keys.take(LOOKED_AT).map(|(_, key)| key);
                Box::new(keys.filter(|&key| !self.lets_next_start(key)))
            }
            Some(GroupPhase::Waiting) | None => Box::new(std::iter::empty()),
        }
    }
}

impl Dynamic {
    fn awaited(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        let next = |&(_, place): &(Key, u64)| self.next(place);
        let keys = std::iter::successors(self.next(0), next);
        Box::new(keys.take(LOOKED_AT).map(|(key, _)| key))
    }
}

impl Children {
    /// What an operation that waits for this child waits for.
    fn wait_reason(&self, key: Key, now: Instant) -> Option<WaitReason> {
        let entry = self.entries.get(key)?;
        let left = |timer| {
            let at = self.timers.at(timer)?;
            Some(at.saturating_duration_since(now))
        };
        Some(match entry.state {
            ChildState::Activating => WaitReason::Readiness,
            ChildState::Gated(_) => WaitReason::Requirement(
                self.requirements.lacks(key).and_then(|(_, provider)| provider),
            ),
            ChildState::Backoff(_) => {
                WaitReason::Restart(left(Timer::Child(key)).unwrap_or_default())
            }
            ChildState::AwaitingGroup => {
                WaitReason::Restart(left(Timer::Group).unwrap_or_default())
            }
            ChildState::AwaitingDecision { .. } => WaitReason::Decision,
            ChildState::Stopping { aborted: true, .. } => WaitReason::Abort,
            ChildState::Stopping { aborted: false, .. } => {
                let own = left(Timer::Child(key)).or_else(|| match self.shutdown(key) {
                    Shutdown::Timeout(grace) => left(Timer::Grace(grace)),
                    Shutdown::BrutalKill | Shutdown::Infinity => None,
                });
                WaitReason::Stop { left: own.into_iter().chain(left(Timer::Total)).min() }
            }
            ChildState::Active | ChildState::Down(_) => return None,
        })
    }
}
