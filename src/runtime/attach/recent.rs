//! What has happened to children lately: calls that named their caller, and children that were removed.
//!
//! No rule depends on it. The status shows it.
//!
//! # Invariants
//!
//! 1. It holds at most [`GONE`] removed children, and for each child one call that was answered and one that wasn't.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::StepView;
use crate::core::{IncarnationNumber, Key};
use crate::exit::ExitReason;
use crate::runtime::request::{CallNote, ChildName};
use crate::status::{ChildInfo, LastCall};

/// How many removed children are kept.
const GONE: usize = 32;
/// For how long a removed child is shown.
const SHOWN: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Debug, Default)]
pub(in crate::runtime) struct Recent {
    calls: FxHashMap<Key, RecentCall>,
    /// The last call about a child that named its caller and waits for its answer.
    asked: FxHashMap<Key, Arc<CallNote>>,
    /// Who holds a child, and since when.
    holds: FxHashMap<Key, (Option<Arc<str>>, Instant)>,
    gone: VecDeque<Gone>,
    /// The child whose failure was followed by a restart last, or that a call has restarted. Siblings restart with it.
    pub(in crate::runtime) restarted: Option<Key>,
}

/// The last call about a child that named its caller.
#[derive(Debug)]
struct RecentCall {
    call: &'static str,
    note: Arc<CallNote>,
    at: Instant,
}

/// A child that was removed.
#[derive(Debug)]
pub(in crate::runtime) struct Gone {
    pub(in crate::runtime) child: ChildName,
    pub(in crate::runtime) incarnation: IncarnationNumber,
    pub(in crate::runtime) at: Instant,
    /// It could run once.
    pub(in crate::runtime) once: bool,
    /// How its last incarnation ended, and how long it had been active, if the child was removed as it ended.
    pub(in crate::runtime) exit: Option<(Arc<ExitReason>, Option<Duration>)>,
}

impl Recent {
    /// Notes a call that named its caller, and isn't answered yet.
    pub(in crate::runtime) fn asked(&mut self, key: Key, note: Arc<CallNote>) {
        self.asked.insert(key, note);
    }

    /// Notes that a call is answered.
    pub(in crate::runtime) fn answered(&mut self, key: Key, note: &Arc<CallNote>) {
        if self.asked.get(&key).is_some_and(|it| Arc::ptr_eq(it, note)) {
            self.asked.remove(&key);
        }
    }

    /// Returns the caller for whom a child is being stopped.
    pub(in crate::runtime) fn stopper(&self, key: Key) -> Option<&CallNote> {
        self.asked.get(&key).map(|note| &**note)
    }

    /// Notes a call that named its caller.
    pub(in crate::runtime) fn called(
        &mut self,
        key: Key,
        call: &'static str,
        note: Arc<CallNote>,
        at: Instant,
    ) {
        self.calls.insert(key, RecentCall { call, note, at });
    }

    /// Notes a call that named no caller. A call that it supersedes doesn't explain the child's state any more.
    pub(in crate::runtime) fn called_without_note(&mut self, key: Key, call: &'static str) {
        let is_superseded = |before: &RecentCall| match before.call {
            "hold" => matches!(call, "hold" | "release"),
            "stop_child" | "terminate_child" => {
                matches!(
                    call,
                    "stop_child" | "terminate_child" | "restart" | "resume" | "restart_child"
                )
            }
            // Otherwise the next kill would seem to be made by the caller of an earlier one.
            "kill" => call == "kill",
            _ => false,
        };
        if self.calls.get(&key).is_some_and(is_superseded) {
            self.calls.remove(&key);
        }
    }

    /// Returns who has killed the child, and why, if the call named its caller.
    pub(super) fn killed_by(&self, key: Key) -> Option<&CallNote> {
        let kill = self.calls.get(&key).filter(|recent| recent.call == "kill");
        kill.map(|recent| &*recent.note)
    }

    /// Notes a hold, unless there is one.
    pub(in crate::runtime) fn held(&mut self, key: Key, by: Option<Arc<str>>, at: Instant) {
        self.holds.entry(key).or_insert((by, at));
    }

    /// Returns who holds the child, and since when.
    pub(in crate::runtime) fn hold(&self, key: Key) -> Option<(Option<Arc<str>>, Instant)> {
        self.holds.get(&key).cloned()
    }

    /// Keeps a child that is about to be removed, and how it ended if this step is about that.
    pub(super) fn removed(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        view: &StepView<'_>,
    ) {
        self.calls.remove(&key);
        self.asked.remove(&key);
        self.holds.remove(&key);
        let Some(record) = view.children.entry(key) else { return };
        let (child, once) = (record.name(), record.once);
        view.shared.tree.watch.forget(|| view.path(key));
        let exit = view.step.exit.as_ref().filter(|it| it.key == key);
        let exit = exit.map(|it| (Arc::clone(&it.reason), it.lifetime));
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(Gone { child, incarnation, at: view.now, once, exit });
    }

    /// Adds the last call to the status of a child.
    pub(super) fn show(&self, key: Key, view: &StepView<'_>, info: &mut ChildInfo) {
        info.last_call = self.calls.get(&key).map(|recent| LastCall {
            call: recent.call,
            by: Arc::clone(&recent.note.by),
            reason: recent.note.reason.clone(),
            at: view.shared.tree.wall_clock(recent.at),
        });
    }

    /// Returns the child with this last name of a path that was removed last.
    pub(in crate::runtime) fn gone(&self, segment: &str) -> Option<&Gone> {
        self.gone.iter().rev().find(|gone| gone.child.is(segment))
    }

    /// Returns the last incarnation of a child that was removed.
    pub(in crate::runtime) fn last_incarnation(
        &self,
        child: &ChildName,
    ) -> Option<IncarnationNumber> {
        let gone = self.gone.iter().rev().find(|gone| gone.child == *child);
        gone.map(|gone| gone.incarnation)
    }

    /// Returns the children that were removed lately, the latest last.
    pub(in crate::runtime) fn gone_lately(&self, now: Instant) -> impl Iterator<Item = &Gone> {
        let is_shown = move |gone: &&Gone| now.saturating_duration_since(gone.at) <= SHOWN;
        self.gone.iter().filter(is_shown)
    }
}
