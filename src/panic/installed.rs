//! Code of another crate that a process installs once, such as the subscriber of `tracing`.
//!
//! # Invariants
//!
//! 1. No panic of such code leaves a call.
//! 2. After the first panic, [`call`](Installed::call) does nothing any more. One line on stderr says so, if
//!    stderr can be written.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::catch_panic;

/// See the [module](self). It belongs to the process, as does what is installed.
pub(crate) struct Installed {
    has_panicked: AtomicBool,
    name: &'static str,
    consequence: &'static str,
}

impl Installed {
    /// `name` and `consequence` say what has panicked, and what follows from that.
    pub(crate) const fn new(name: &'static str, consequence: &'static str) -> Self {
        Self { has_panicked: AtomicBool::new(false), name, consequence }
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Relaxed)
    }

    /// Calls `foreign`, unless such a call has panicked before. Returns `None` if it has or does.
    pub(crate) fn call<T>(&self, foreign: impl FnOnce() -> T) -> Option<T> {
        if self.has_panicked() {
            return None;
        }
        self.contain(foreign)
    }

    /// Calls `foreign`, also after a panic: it ends what was begun before. Returns `None` if it panics.
    pub(crate) fn contain<T>(&self, foreign: impl FnOnce() -> T) -> Option<T> {
        let returned = catch_panic(foreign);
        if returned.is_none() && !self.has_panicked.swap(true, Ordering::Relaxed) {
            let Self { name, consequence, .. } = self;
            let line = format!("verger: the {name} has panicked; {consequence}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        returned
    }
}
