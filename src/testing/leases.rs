//! A store of leases in memory, with faults, and a check of the rules that every engine keeps.

mod rules;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

pub use self::rules::assert_lease_rules;
use crate::clock::{later, now};
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

    fn stores_memos(&self) -> bool {
        true
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

/// One lease.
#[derive(Default)]
struct Record {
    grant: Option<Grant>,
    last_token: u64,
    memo: Memo,
    /// The highest token that the resource has accepted.
    accepted: Option<FencingToken>,
    history: Vec<LeaseEvent>,
}

struct Grant {
    holder: Arc<str>,
    token: FencingToken,
    /// `None`: never.
    expires: Option<Instant>,
}

impl Record {
    /// Returns the grant, unless it has expired.
    fn valid(&mut self, now: Instant) -> Option<&mut Grant> {
        self.grant.as_mut().filter(|grant| grant.expires.is_none_or(|expires| now < expires))
    }

    fn grant(&mut self, holder: Arc<str>, expires: Option<Instant>) -> FencingToken {
        self.last_token += 1;
        let token = FencingToken::new(self.last_token);
        self.grant = Some(Grant { holder, token, expires });
        token
    }

    fn expire(&mut self) {
        self.grant = None;
    }

    /// Returns what [`LeaseEngine::holder`](crate::lease::LeaseEngine::holder) answers.
    fn show(&mut self, now: Instant) -> LeaseRecord {
        let shown = match self.valid(now) {
            Some(Grant { holder, token, expires }) => {
                let shown = LeaseRecord::held().with_holder(Arc::clone(holder)).with_token(*token);
                match expires {
                    Some(at) => shown.with_remaining(at.saturating_duration_since(now)),
                    None => shown,
                }
            }
            None => LeaseRecord::free(),
        };
        shown.with_memo(self.memo)
    }

    fn accepts(&mut self, token: FencingToken) -> bool {
        let accepts = self.accepted.is_none_or(|highest| highest <= token);
        if accepts {
            self.accepted = Some(token);
        }
        accepts
    }

    fn carry_out(&mut self, claim: &Claim, request: LeaseRequest, now: Instant) -> LeaseEffect {
        let expires = Some(later(now, claim.ttl()));
        let valid = self.valid(now);
        let token = match request {
            LeaseRequest::Acquire => None,
            LeaseRequest::Renew(token)
            | LeaseRequest::Release(token)
            | LeaseRequest::WriteMemo(token, _) => Some(token),
        };
        let own = valid.as_ref().is_some_and(|grant| grant.holder == *claim.holder());
        let is_current = own && valid.as_ref().map(|grant| grant.token) == token;
        match request {
            LeaseRequest::Acquire => match valid.filter(|_| !own) {
                Some(grant) => LeaseEffect::Held { by: Arc::clone(&grant.holder) },
                None => LeaseEffect::Granted(self.grant(Arc::clone(claim.holder()), expires)),
            },
            LeaseRequest::Renew(_) if is_current => {
                self.grant.as_mut().expect("it is current").expires = expires;
                LeaseEffect::Extended
            }
            LeaseRequest::Renew(_) => LeaseEffect::Lost,
            LeaseRequest::Release(_) if is_current => {
                self.expire();
                LeaseEffect::Released
            }
            LeaseRequest::WriteMemo(_, memo) if is_current => {
                self.memo = memo;
                LeaseEffect::Stored
            }
            LeaseRequest::Release(_) | LeaseRequest::WriteMemo(..) => LeaseEffect::NotHeld,
        }
    }
}

/// A request in the [history](super::MemoryLeases::history) of a lease.
///
/// It is displayed as the request and its effect:
///
/// ```text
/// a: acquire -> granted 1
/// b: acquire -> held by a
/// a: renew 1 -> extended
/// a: renew 1 -> unreachable
/// a: release 1 -> released (not answered)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseEvent {
    /// When it was sent.
    pub at: tokio::time::Instant,
    /// The holder that has sent it.
    pub holder: Arc<str>,
    /// The request.
    pub request: LeaseRequest,
    /// What it has done.
    pub effect: LeaseEffect,
    /// Whether the store answers with the effect: `false` if a fault hides it.
    pub answered: bool,
}

/// A request to [`MemoryLeases`](super::MemoryLeases).
///
/// The example of [`MemoryLeases`](super::MemoryLeases) displays some, each with its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRequest {
    /// [`LeaseEngine::acquire`](crate::lease::LeaseEngine::acquire).
    Acquire,
    /// [`LeaseEngine::renew`](crate::lease::LeaseEngine::renew), with this token.
    Renew(FencingToken),
    /// [`LeaseEngine::release`](crate::lease::LeaseEngine::release), with this token.
    Release(FencingToken),
    /// [`LeaseEngine::write_memo`](crate::lease::LeaseEngine::write_memo), with this token and memo.
    WriteMemo(FencingToken, Memo),
}

/// What a request to [`MemoryLeases`](super::MemoryLeases) has done.
///
/// The example of [`MemoryLeases`](super::MemoryLeases) displays some, each with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseEffect {
    /// The lease is granted, with this token.
    Granted(FencingToken),
    /// The lease isn't granted, because a different holder has it.
    Held {
        /// That holder.
        by: Arc<str>,
    },
    /// The lease is extended.
    Extended,
    /// The lease isn't extended: the holder doesn't have it, or has a newer token.
    Lost,
    /// The lease is free.
    Released,
    /// The memo is stored.
    Stored,
    /// The lease isn't released, or the memo isn't stored: the holder doesn't have it, or has a newer token.
    NotHeld,
    /// Nothing: the store is [unreachable](super::MemoryLeases::set_unreachable).
    Unreachable,
    /// Nothing: the request [hangs](super::MemoryLeases::hang).
    Hangs,
}

impl fmt::Display for LeaseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, request, effect, .. } = self;
        write!(f, "{holder}: {request} -> {effect}")?;
        match effect {
            LeaseEffect::Unreachable | LeaseEffect::Hangs => Ok(()),
            _ if self.answered => Ok(()),
            _ => f.write_str(" (not answered)"),
        }
    }
}

impl fmt::Display for LeaseRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire => f.write_str("acquire"),
            Self::Renew(token) => write!(f, "renew {token}"),
            Self::Release(token) => write!(f, "release {token}"),
            Self::WriteMemo(token, _) => write!(f, "write memo {token}"),
        }
    }
}

impl fmt::Display for LeaseEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Granted(token) => return write!(f, "granted {token}"),
            Self::Held { by } => return write!(f, "held by {by}"),
            Self::Extended => "extended",
            Self::Lost => "lost",
            Self::Released => "released",
            Self::Stored => "stored",
            Self::NotHeld => "not held",
            Self::Unreachable => "unreachable",
            Self::Hangs => "hangs",
        };
        f.write_str(text)
    }
}

#[cfg(test)]
mod tests;
