//! What children and callers record.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use tokio::task::yield_now;
use verger::{Context, SupervisorHandle};

use super::script::Script;

#[derive(Debug)]
pub(super) struct World {
    pub(super) script: Arc<Script>,
    /// The live incarnations of each path.
    pub(super) live: Mutex<BTreeMap<String, u32>>,
    pub(super) violations: Mutex<Vec<String>>,
    /// Absent at the end: a handle keeps the specs, which keep this.
    pub(super) tree: Mutex<Option<SupervisorHandle>>,
    /// How many children may still be started by calls, which children make, too.
    pub(super) starts: AtomicUsize,
}

impl World {
    pub(super) fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    pub(super) fn live(&self, path: &str) -> bool {
        self.live.lock().unwrap().contains_key(path)
    }

    pub(super) fn check(&self) {
        let violations = self.violations.lock().unwrap();
        assert!(violations.is_empty(), "{violations:#?}\n{:#?}", self.script);
    }
}

/// Records that an incarnation is alive, until it is dropped.
pub(super) struct Alive {
    pub(super) path: String,
    pub(super) world: Arc<World>,
    pub(super) panics: bool,
}

impl Alive {
    pub(super) fn new(ctx: &Context, panics: bool, world: Arc<World>) -> Self {
        let (path, incarnation) = (ctx.path().to_string(), ctx.incarnation());
        let before = world.live.lock().unwrap().insert(path.clone(), incarnation);
        if let Some(before) = before {
            world.violation(format!("{path}: {incarnation} began beside {before}"));
        }
        Self { path, world, panics }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.world.live.lock().unwrap().remove(&self.path);
        if self.panics && !std::thread::panicking() {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

pub(super) async fn yields(times: u8) {
    for _ in 0..times % 16 {
        yield_now().await;
    }
}
