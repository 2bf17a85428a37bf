//! The lease of a child.

use std::sync::Arc;
use std::time::Duration;

use super::engine::LeaseEngine;
use super::times::LeaseTimes;

/// The lease that a child needs in order to run.
///
/// | | default |
/// | --- | --- |
/// | [`ttl`](Self::ttl) | 15 s |
/// | [`renew_deadline`](Self::renew_deadline) | 10 s |
/// | [`retry`](Self::retry) | 2 s |
/// | [`poll`](Self::poll) | 500 ms |
#[derive(Clone, Debug)]
#[must_use = "a lease does nothing until it is given to a child"]
pub struct Lease {
    pub(crate) name: Arc<str>,
    pub(crate) engine: Arc<dyn LeaseEngine>,
    pub(crate) times: LeaseTimes,
}

impl Lease {
    /// Creates the lease with this name in the store of the engine.
    ///
    /// All processes of which one is to run the child give it the same name.
    pub fn new(name: impl Into<Arc<str>>, engine: impl LeaseEngine) -> Self {
        Self { name: name.into(), engine: Arc::new(engine), times: LeaseTimes::default() }
    }

    /// Sets how long the lease lasts after the last request that the store has received. Default: 15 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.times.ttl = ttl;
        self
    }

    /// Sets how long after the last renewal the child is cancelled. Default: 10 s.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.times.renew_deadline = deadline;
        self
    }

    /// Sets the time from one request to renew to the next. Default: 2 s.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.times.retry = retry;
        self
    }

    /// Sets the time from one request of a standby to the next. Default: 500 ms.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.times.poll = poll;
        self
    }
}
