//! The lease with which an incarnation was started, for what continues where the last holder has stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::engine::{Claim, FencingToken, LeaseEngine, LeaseError, MemoWrite};
use super::record::Memo;
use super::spec::Lease;
use crate::panic::Foreign;

/// A property of the child, set with each grant.
#[derive(Debug)]
pub(crate) struct HeldLease {
    engine: Foreign<dyn LeaseEngine>,
    claim: Claim,
    token: FencingToken,
    /// How long a request may take.
    within: Duration,
}

impl HeldLease {
    pub(crate) fn new(lease: &Lease, holder: Arc<str>, token: FencingToken) -> Self {
        let claim = Claim::new(Arc::clone(&lease.name), holder, lease.times.ttl);
        let within = lease.times.request_timeout();
        Self { engine: lease.engine.clone(), claim, token, within }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.claim.name()
    }

    /// Returns the memo. No earlier holder can write it any more.
    ///
    /// # Errors
    ///
    /// If it isn't known, or if there was no answer in time.
    pub(crate) async fn memo(&self) -> Result<Memo, LeaseError> {
        let record = timeout(self.within, self.engine.holder(self.claim.name())).await;
        Ok(*record.unwrap_or_else(|_| Err(self.unanswered()))?.memo())
    }

    /// Stores a memo, if the lease is still held.
    ///
    /// # Errors
    ///
    /// If it isn't known whether it is stored, or if there was no answer in time.
    pub(crate) async fn write_memo(&self, memo: &Memo) -> Result<MemoWrite, LeaseError> {
        let written = self.engine.write_memo(&self.claim, self.token, memo);
        timeout(self.within, written).await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    fn unanswered(&self) -> LeaseError {
        LeaseError::new(format!("no answer within {:?}", self.within))
    }
}
