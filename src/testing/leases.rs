//! A store of leases in memory, with faults.

mod store;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::store::Record;
pub use self::store::{LeaseEffect, LeaseEvent, LeaseRequest};
use crate::clock::now;
use crate::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};
use crate::sync::Mutex;

/// A store of leases in memory, for tests of children with a [`Lease`](crate::lease::Lease).
///
/// It is a [`LeaseEngine`] that keeps all [rules](LeaseEngine#rules) of one, with the clock of tokio, so that tests can
/// pause it. A test can look into the store, and make it fail:
///
/// | call | what happens |
/// | --- | --- |
/// | [`set_unreachable`](Self::set_unreachable) | requests don't reach the store, and are answered with an error |
/// | [`hang`](Self::hang) | requests don't reach the store, and are never answered |
/// | [`lose_answers`](Self::lose_answers) | requests have their effect, and are answered with an error |
/// | [`delay`](Self::delay) | requests have their effect at once, and are answered later |
/// | [`take_away`](Self::take_away) | an outsider gets the lease, which its holder hasn't released |
/// | [`expire`](Self::expire) | the lease expires now |
///
/// Clones share the store and the first four faults. A [`client`](Self::client) shares the store only: give each of
/// two trees its own client to cut off one of them.
///
/// ```
/// use std::time::Duration;
///
/// use verger::lease::{Acquired, Claim, LeaseEngine};
/// use verger::testing::MemoryLeases;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), verger::lease::LeaseError> {
/// let leases = MemoryLeases::new();
/// let claim = |holder| Claim::new("billing", holder, Duration::from_secs(15));
///
/// assert!(matches!(leases.acquire(&claim("a")).await?, Acquired::Granted(_)));
/// assert_eq!(leases.holder("billing").as_deref(), Some("a"));
/// leases.acquire(&claim("b")).await?;
///
/// leases.set_unreachable(true);
/// assert!(leases.acquire(&claim("b")).await.is_err());
///
/// leases.set_unreachable(false);
/// tokio::time::sleep(Duration::from_secs(15)).await;
/// leases.acquire(&claim("b")).await?;
///
/// let history: Vec<_> = leases.history("billing").iter().map(ToString::to_string).collect();
/// assert_eq!(
///     history,
///     [
///         "a: acquire -> granted 1",
///         "b: acquire -> held by a",
///         "b: acquire -> unreachable",
///         "b: acquire -> granted 2",
///     ]
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryLeases {
    store: Arc<Mutex<HashMap<Arc<str>, Record>>>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Clone, Copy, Default)]
struct Faults {
    unreachable: bool,
    hangs: bool,
    loses_answers: bool,
    delay: Duration,
}

/// The holder of a lease that was taken away.
const OUTSIDER: &str = "an outsider";

impl MemoryLeases {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a client of the same store that has its own faults, and none yet.
    #[must_use]
    pub fn client(&self) -> Self {
        Self { store: Arc::clone(&self.store), faults: Arc::default() }
    }

    /// Sets whether requests fail without reaching the store. Default: no.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.faults.lock().unreachable = unreachable;
    }

    /// Sets whether requests are never answered, and don't reach the store. Default: no.
    ///
    /// It applies to new requests: those that hang already are never answered.
    pub fn hang(&self, hangs: bool) {
        self.faults.lock().hangs = hangs;
    }

    /// Sets whether requests are answered with an error after they have had their effect. Default: no.
    pub fn lose_answers(&self, loses: bool) {
        self.faults.lock().loses_answers = loses;
    }

    /// Sets how long each answer takes. Default: zero.
    ///
    /// It applies to new requests, and to those that fail as well. Each has its effect at once.
    pub fn delay(&self, delay: Duration) {
        self.faults.lock().delay = delay;
    }

    /// Grants the lease to an outsider until [`expire`](Self::expire) is called, although its holder hasn't released it.
    ///
    /// The holder isn't notified: its next request to renew is answered with *no*.
    pub fn take_away(&self, name: &str) {
        self.record(name, |record| record.grant(OUTSIDER.into(), None));
    }

    /// Expires the lease now, also if an outsider has it.
    pub fn expire(&self, name: &str) {
        self.record(name, Record::expire);
    }

    /// Returns the holder of the lease, or `None` if the lease is free.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<Arc<str>> {
        self.record(name, |record| record.valid(now()).map(|grant| Arc::clone(&grant.holder)))
    }

    /// Returns the token of the holder of the lease, or `None` if the lease is free.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<FencingToken> {
        self.record(name, |record| record.valid(now()).map(|grant| grant.token))
    }

    /// Returns the memo that was stored last with the lease, and the empty one if there was none.
    #[must_use]
    pub fn memo(&self, name: &str) -> Memo {
        self.record(name, |record| record.memo)
    }

    /// Returns all requests for the lease, also those that didn't reach the store.
    ///
    /// [`LeaseEngine::holder`] isn't among them, because it changes nothing.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<LeaseEvent> {
        self.record(name, |record| record.history.clone())
    }

    /// Returns whether a resource that compares tokens accepts a write with this one.
    ///
    /// The highest token so far is kept for each lease, and lower ones are refused. Call this where the resource of the
    /// program would compare them.
    ///
    /// ```
    /// use verger::lease::FencingToken;
    /// use verger::testing::MemoryLeases;
    ///
    /// let leases = MemoryLeases::new();
    /// let (older, newer) = (FencingToken::new(7), FencingToken::new(8));
    /// assert!(leases.accepts("billing", older));
    /// assert!(leases.accepts("billing", newer));
    /// assert!(!leases.accepts("billing", older), "a later holder has written");
    /// ```
    #[must_use]
    pub fn accepts(&self, name: &str, token: FencingToken) -> bool {
        self.record(name, |record| record.accepts(token))
    }

    fn record<T>(&self, name: &str, with: impl FnOnce(&mut Record) -> T) -> T {
        with(self.store.lock().entry(name.into()).or_default())
    }

    /// Sends a request, and returns its effect unless a fault hides it.
    async fn send(&self, claim: &Claim, request: LeaseRequest) -> Result<LeaseEffect, LeaseError> {
        let faults = *self.faults.lock();
        let effect = self.record(claim.name(), |record| {
            let effect = match faults {
                Faults { hangs: true, .. } => LeaseEffect::Hangs,
                Faults { unreachable: true, .. } => LeaseEffect::Unreachable,
                _ => record.carry_out(claim, request, now()),
            };
            record.history.push(LeaseEvent {
                at: now().into(),
                holder: Arc::clone(claim.holder()),
                request,
                effect: effect.clone(),
                answered: !(faults.hangs || faults.unreachable || faults.loses_answers),
            });
            effect
        });
        faults.answer(effect).await
    }
}

impl Faults {
    /// Answers a request that had its effect, unless a fault hides the answer.
    async fn answer<T>(self, answer: T) -> Result<T, LeaseError> {
        if self.hangs {
            return std::future::pending().await;
        }
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        match self {
            Self { unreachable: true, .. } => Err(LeaseError::new("the store is unreachable")),
            Self { loses_answers: true, .. } => Err(LeaseError::new("the answer was lost")),
            _ => Ok(answer),
        }
    }
}

#[async_trait]
impl LeaseEngine for MemoryLeases {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        Ok(match self.send(claim, LeaseRequest::Acquire).await? {
            LeaseEffect::Granted(token) => Acquired::Granted(token),
            LeaseEffect::Held { by } => Acquired::Held { by: Some(by) },
            _ => Acquired::Held { by: None },
        })
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        Ok(match self.send(claim, LeaseRequest::Renew(token)).await? {
            LeaseEffect::Extended => Renewed::Extended,
            _ => Renewed::Lost,
        })
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        Ok(match self.send(claim, LeaseRequest::Release(token)).await? {
            LeaseEffect::Released => Released::Released,
            _ => Released::NotHeld,
        })
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        let faults = *self.faults.lock();
        let record = self.record(name, |record| record.show(now()));
        faults.answer(record).await
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        Ok(match self.send(claim, LeaseRequest::WriteMemo(token, *memo)).await? {
            LeaseEffect::Stored => MemoWrite::Stored,
            _ => MemoWrite::NotHeld,
        })
    }
}

/// Prints no content, which other tasks may be changing.
impl fmt::Debug for MemoryLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLeases").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
