//! The groups of all processes that are kept, for an end of this program that waits for nothing.
//!
//! A process leads a group of its own, so a signal of the terminal doesn't reach it, and it would outlive the program.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rustix::process::{Pid, Signal};

use super::group::Group;
use crate::sync::Mutex;

static LIVE: LazyLock<Mutex<HashMap<Pid, Arc<Group>>>> = LazyLock::new(Mutex::default);

/// Until this is dropped, the group is killed if the program ends at once.
#[derive(Debug)]
pub(super) struct Live(Arc<Group>);

impl Live {
    pub(super) fn new(group: &Arc<Group>) -> Self {
        LIVE.lock().insert(group.leader(), Arc::clone(group));
        Self(Arc::clone(group))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let (mut live, leader) = (LIVE.lock(), self.0.leader());
        // Once the leader is reaped, its number may be that of the next process.
        if live.get(&leader).is_some_and(|group| Arc::ptr_eq(group, &self.0)) {
            live.remove(&leader);
        }
    }
}

/// Kills all groups. The program ends now.
pub(crate) fn kill_all() {
    for group in LIVE.lock().values() {
        // A group that can't be signalled is left as it is: there is no time to say so.
        let _ = group.signal(Signal::KILL);
    }
}
