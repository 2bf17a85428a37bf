//! What has happened in all hosts of a simulation, by its clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::shared::checker::history::{Grant, History, Nanos, Run};
use crate::shared::checker::judge::{Violation, judge};

/// Returns the clock of the simulation. Call it on a host.
pub(crate) fn now() -> Nanos {
    nanos(turmoil::sim_elapsed().expect("it runs on a host of the simulation"))
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    time.as_nanos() as Nanos
}

/// Clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    history: History,
    /// Until when the store had each token as valid.
    valid: BTreeMap<u64, Nanos>,
}

impl Record {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(crate) fn note(&self, at: Nanos, member: u32, text: impl Into<String>) {
        self.inner().history.lines.push((at, member, text.into()));
    }

    /// Notes something that must not happen.
    pub(crate) fn unexpected(&self, text: String) {
        self.inner().history.unexpected.push(text);
    }

    /// Notes that a member has received a grant.
    pub(crate) fn granted(&self, member: u32, sent: Nanos, token: u64) {
        let answered = now();
        self.note(answered, member, format!("is granted {token}"));
        self.inner().history.grants.push(Grant { member, sent, answered, token });
    }

    /// Notes until when the store has a token as valid.
    pub(crate) fn valid(&self, token: u64, until: Nanos) {
        self.inner().valid.insert(token, until);
    }

    /// Notes that the child of a member runs, until the result is dropped.
    pub(crate) fn begin(&self, member: u32, token: u64) -> Running {
        let at = now();
        self.note(at, member, format!("starts with {token}"));
        let mut inner = self.inner();
        inner.history.runs.push(Run { member, token, asked: at, started: at, ended: None });
        Running { record: self.clone(), index: inner.history.runs.len() - 1 }
    }

    /// Ends what runs on a host that crashes now.
    pub(crate) fn crashed(&self, member: u32, at: Nanos) {
        let mut inner = self.inner();
        let open = inner.history.runs.iter_mut();
        open.filter(|it| it.member == member && it.ended.is_none())
            .for_each(|it| it.ended = Some(at));
    }

    /// Returns the members whose child runs.
    pub(crate) fn running(&self) -> Vec<u32> {
        let inner = self.inner();
        let open = inner.history.runs.iter().filter(|it| it.ended.is_none());
        open.map(|it| it.member).collect()
    }

    /// Returns all that has happened, and what of it must not happen.
    pub(crate) fn judge(&self) -> (History, Vec<Violation>) {
        let mut inner = self.inner();
        let outlived: Vec<_> =
            inner.history.runs.iter().filter_map(|run| inner.outlived(run)).collect();
        inner.history.unexpected.extend(outlived);
        (inner.history.clone(), judge(&inner.history))
    }
}

impl Inner {
    /// Says so if the store may have granted the lease to a different member while this run went on.
    fn outlived(&self, run: &Run) -> Option<String> {
        let Run { member, token, ended, .. } = *run;
        let (ended, valid) = (ended?, self.valid.get(&token).copied().unwrap_or_default());
        let text =
            || format!("member {member} ran until {ended} with token {token}, valid until {valid}");
        (ended > valid).then(text)
    }
}

/// A child runs. Its end is noted when this is dropped, also if it is aborted.
#[derive(Debug)]
pub(crate) struct Running {
    record: Record,
    index: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut inner = self.record.inner();
        let run = &mut inner.history.runs[self.index];
        // What a crash has ended has ended already. There is no clock then.
        if run.ended.is_none()
            && let Some(at) = turmoil::sim_elapsed()
        {
            run.ended = Some(nanos(at));
            let (member, text) = (run.member, format!("ends with {}", run.token));
            inner.history.lines.push((nanos(at), member, text));
        }
    }
}
