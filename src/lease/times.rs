//! How long a lease lasts, and when its guard acts.

use std::time::Duration;

/// The times of a lease.
///
/// | | default | |
/// | --- | --- | --- |
/// | [`ttl`](Self::ttl) | 15 s | after the last request that the store has received, the lease expires |
/// | [`renew_deadline`](Self::renew_deadline) | 10 s | after the last request that was answered with *yes*, the child is cancelled |
/// | [`retry`](Self::retry) | 2 s | from one request to renew to the next |
/// | [`poll`](Self::poll) | 500 ms | from one request of a standby to the next |
///
/// All count from before the request was sent. Between the renew deadline and the expiry, the child has its grace
/// to end: it is aborted before the lease expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    pub(crate) ttl: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry: Duration,
    pub(crate) poll: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            poll: Duration::from_millis(500),
        }
    }
}
