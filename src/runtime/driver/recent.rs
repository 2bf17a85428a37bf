//! What has happened to children lately: calls that named their caller, and children that were removed.
//!
//! No rule depends on it. The status shows it.
//!
//! # Invariants
//!
//! 1. It holds at most [`GONE`] removed children, and one call for each child.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::{IncarnationNumber, Key};
use crate::exit::ExitReason;
use crate::runtime::children::ChildRecord;
use crate::runtime::request::{CallNote, ChildName};

/// How many removed children are kept.
const GONE: usize = 32;
/// For how long a removed child is shown.
const SHOWN: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Recent {
    calls: BTreeMap<Key, RecentCall>,
    gone: VecDeque<Gone>,
}

/// The last call about a child that named its caller.
#[derive(Debug)]
pub(super) struct RecentCall {
    pub(super) call: &'static str,
    pub(super) note: Arc<CallNote>,
    pub(super) at: Instant,
}

/// A child that was removed.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) child: ChildName,
    pub(super) incarnation: IncarnationNumber,
    pub(super) at: Instant,
    /// How its last incarnation ended, and how long it had been active, if the child was removed as it ended.
    pub(super) exit: Option<(Arc<ExitReason>, Option<Duration>)>,
}

impl Recent {
    pub(super) fn called(&mut self, key: Key, call: RecentCall) {
        self.calls.insert(key, call);
    }

    /// Notes a call that named no caller. A call that it supersedes doesn't explain the child's state any more.
    pub(super) fn called_without_note(&mut self, key: Key, call: &'static str) {
        let is_superseded = |before: &RecentCall| match before.call {
            "hold" => matches!(call, "hold" | "release"),
            "terminate_child" => matches!(call, "terminate_child" | "restart_child"),
            _ => false,
        };
        if self.calls.get(&key).is_some_and(is_superseded) {
            self.calls.remove(&key);
        }
    }

    pub(super) fn call(&self, key: Key) -> Option<&RecentCall> {
        self.calls.get(&key)
    }

    pub(super) fn forget_calls(&mut self, key: Key) {
        self.calls.remove(&key);
    }

    /// Records the removal of a child. Call it before the child is removed. `exit`: as in [`Gone::exit`].
    pub(super) fn gone(
        &mut self,
        child: Option<&ChildRecord>,
        incarnation: IncarnationNumber,
        exit: Option<(Arc<ExitReason>, Option<Duration>)>,
        at: Instant,
    ) {
        let Some(child) = child.map(ChildRecord::name) else { return };
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(Gone { child, incarnation, at, exit });
    }

    /// Returns the last incarnation of a child that was removed.
    pub(super) fn last_incarnation(&self, child: &ChildName) -> Option<IncarnationNumber> {
        let gone = self.gone.iter().rev().find(|gone| gone.child == *child);
        gone.map(|gone| gone.incarnation)
    }

    /// Returns the children that were removed lately, the latest last.
    pub(super) fn gone_lately(&self, now: Instant) -> impl Iterator<Item = &Gone> {
        let is_shown = move |gone: &&Gone| now.saturating_duration_since(gone.at) <= SHOWN;
        self.gone.iter().filter(is_shown)
    }
}
