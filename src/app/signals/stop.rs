//! The signals that stop an application.

use std::any::TypeId;
use std::sync::Arc;

use async_trait::async_trait;

use super::{LISTENERS, Registration, Signals, signals};
use crate::app::companion::{Companion, RunStart};
use crate::error::RunError;
use crate::spec::Supervisor;

/// See the [module](self).
pub(in crate::app) struct StopSignals {
    /// Whether they stop the tree even if no future of the user's is one of theirs.
    listens: bool,
    received: Option<Signals>,
    registrations: Vec<Registration>,
}

impl StopSignals {
    pub(in crate::app) fn new(listens: bool) -> Self {
        Self { listens, received: None, registrations: Vec::new() }
    }
}

#[async_trait]
impl Companion for StopSignals {
    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        self.received = self.listens.then(signals);
        Ok(())
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        if let Some(received) = self.received.take() {
            run.stop_on(received);
        }
        let root = Arc::clone(&run.root.shared);
        self.registrations.push(LISTENERS.on_second(Arc::new(move || root.still_running())));
        // A signal that stops something else in the process says nothing about this tree.
        if run.program.on.iter().any(|(future, _)| *future == TypeId::of::<Signals>()) {
            let calls = run.on_signal.drain(..);
            let register = |call: Box<_>| LISTENERS.on_first(Arc::new(move |_| call()));
            self.registrations.extend(calls.map(register));
        }
    }
}
