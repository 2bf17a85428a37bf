//! What a store knows of a lease.

use std::sync::Arc;
use std::time::Duration;

use super::engine::FencingToken;
use super::memo::Memo;

/// What a store knows of a lease: the answer of [`LeaseEngine::holder`](super::LeaseEngine::holder).
///
/// A lease is held or free. What is known besides depends on the store: one that locks a file has no expiry, and one that
/// is read through a replica may know no name.
///
/// Engines create a record with [`held`](Self::held) or [`free`](Self::free), and add what their store knows:
///
/// ```
/// use std::time::Duration;
///
/// use verger::lease::{FencingToken, LeaseRecord, Memo};
///
/// let record = LeaseRecord::held()
///     .with_holder("web-1/4711-5f2c08aa:app/billing")
///     .with_token(FencingToken::new(7))
///     .with_remaining(Duration::from_secs(9))
///     .with_memo(Memo::new("invoice 4711")?);
/// assert!(record.is_held());
/// assert_eq!(record.remaining(), Some(Duration::from_secs(9)));
///
/// let record = LeaseRecord::free();
/// assert_eq!((record.is_held(), record.holder()), (false, None));
/// assert!(record.memo().is_empty());
/// # Ok::<(), verger::lease::MemoTooLong>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    is_held: bool,
    holder: Option<Arc<str>>,
    token: Option<FencingToken>,
    remaining: Option<Duration>,
    memo: Memo,
}

impl LeaseRecord {
    /// Creates the record of a lease that nobody has.
    #[must_use]
    pub fn free() -> Self {
        Self { is_held: false, holder: None, token: None, remaining: None, memo: Memo::default() }
    }

    /// Creates the record of a lease that somebody has.
    #[must_use]
    pub fn held() -> Self {
        Self { is_held: true, ..Self::free() }
    }

    /// Adds the holder's name, as it is in [`Claim::holder`](super::Claim::holder).
    #[must_use]
    pub fn with_holder(mut self, holder: impl Into<Arc<str>>) -> Self {
        self.holder = Some(holder.into());
        self
    }

    /// Adds the token with which the lease was granted.
    #[must_use]
    pub fn with_token(mut self, token: FencingToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Adds the time until the lease expires if it isn't renewed, by the clock of the store.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = Some(remaining);
        self
    }

    /// Adds the memo that was written last, even if the lease is free.
    #[must_use]
    pub fn with_memo(mut self, memo: Memo) -> Self {
        self.memo = memo;
        self
    }

    /// Returns whether somebody has the lease.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the name of the holder. `None` if the lease is free, or if the store doesn't know it.
    ///
    /// [`Owner::of`](super::Owner::of) finds the address that the holder advertises.
    #[must_use]
    pub fn holder(&self) -> Option<&Arc<str>> {
        self.holder.as_ref()
    }

    /// Returns the token of the holder. `None` if the lease is free, or if the store doesn't know it.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.token
    }

    /// Returns the time until the lease expires, as it was when the store answered. `None` if the lease is free, if it doesn't
    /// expire, or if the store doesn't know it.
    ///
    /// It is a duration and no time of day, because the clocks of two machines differ. Holders renew their leases, so a
    /// lease is rarely free afterwards.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the memo that was written last. Empty if there was none.
    #[must_use]
    pub fn memo(&self) -> &Memo {
        &self.memo
    }
}
