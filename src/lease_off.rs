//! The module `lease` without its feature: no child has a lease.

use std::convert::Infallible;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::path::Path;

/// The lease of a child: there is none.
#[derive(Clone, Debug)]
pub(crate) struct Lease(Infallible);

impl Lease {
    pub(crate) fn name(&self) -> &Arc<str> {
        match self.0 {}
    }

    pub(crate) fn address(&self) -> Option<&str> {
        match self.0 {}
    }

    pub(crate) fn check(&self) -> Result<(), Infallible> {
        match self.0 {}
    }
}

/// The number of a grant: there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FencingToken(Infallible);

impl FencingToken {
    pub(crate) fn get(self) -> u64 {
        match self.0 {}
    }
}

/// What a keeper reports: there is none.
#[derive(Debug)]
pub(crate) enum LeaseChange {
    #[expect(dead_code, reason = "no lease is asked for")]
    Standby { holder: Option<Arc<str>>, problem: Option<Arc<str>> },
    #[expect(dead_code, reason = "no lease is granted")]
    Granted(FencingToken),
    #[expect(dead_code, reason = "no lease is lost")]
    Lost(Infallible),
}

/// How a keeper ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeaseEnd {
    Release,
    Abandon,
}

pub(crate) fn holder(_child: &Path, _leaked: u32, _address: Option<&str>) -> Arc<str> {
    Arc::default()
}

pub(crate) async fn keep(
    lease: Lease,
    _holder: Arc<str>,
    _end: oneshot::Receiver<LeaseEnd>,
    _report: impl FnMut(LeaseChange) + Send,
) {
    match lease.0 {}
}
