//! What a store of leases in memory keeps, and what requests do to it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::lease::{Claim, FencingToken, LeaseRecord, Memo};
use crate::policy::later;

/// One lease.
#[derive(Default)]
pub(super) struct Record {
    grant: Option<Grant>,
    last_token: u64,
    pub(super) memo: Memo,
    /// The highest token that the resource has accepted.
    accepted: Option<FencingToken>,
    pub(super) history: Vec<LeaseEvent>,
}

pub(super) struct Grant {
    pub(super) holder: Arc<str>,
    pub(super) token: FencingToken,
    /// `None`: never.
    expires: Option<Instant>,
}

impl Record {
    /// Returns the grant, unless it has expired.
    pub(super) fn valid(&mut self, now: Instant) -> Option<&mut Grant> {
        self.grant.as_mut().filter(|grant| grant.expires.is_none_or(|expires| now < expires))
    }

    pub(super) fn grant(&mut self, holder: Arc<str>, expires: Option<Instant>) -> FencingToken {
        self.last_token += 1;
        let token = FencingToken::new(self.last_token);
        self.grant = Some(Grant { holder, token, expires });
        token
    }

    pub(super) fn expire(&mut self) {
        self.grant = None;
    }

    /// Returns what [`LeaseEngine::holder`](crate::lease::LeaseEngine::holder) answers.
    pub(super) fn show(&mut self, now: Instant) -> LeaseRecord {
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

    pub(super) fn accepts(&mut self, token: FencingToken) -> bool {
        let accepts = self.accepted.is_none_or(|highest| highest <= token);
        if accepts {
            self.accepted = Some(token);
        }
        accepts
    }

    pub(super) fn carry_out(
        &mut self,
        claim: &Claim,
        request: LeaseRequest,
        now: Instant,
    ) -> LeaseEffect {
        let expires = Some(later(now, claim.ttl()));
        let valid = self.valid(now);
        let own = |grant: &&mut Grant| grant.holder == *claim.holder();
        match request {
            LeaseRequest::Acquire => match valid.filter(|grant| !own(grant)) {
                Some(grant) => LeaseEffect::Held { by: Arc::clone(&grant.holder) },
                None => LeaseEffect::Granted(self.grant(Arc::clone(claim.holder()), expires)),
            },
            LeaseRequest::Renew(token) => {
                match valid.filter(own).filter(|grant| grant.token == token) {
                    Some(grant) => {
                        grant.expires = expires;
                        LeaseEffect::Extended
                    }
                    None => LeaseEffect::Lost,
                }
            }
            LeaseRequest::Release(token) => {
                match valid.filter(own).filter(|grant| grant.token == token) {
                    Some(_) => {
                        self.expire();
                        LeaseEffect::Released
                    }
                    None => LeaseEffect::NotHeld,
                }
            }
            LeaseRequest::WriteMemo(token, memo) => {
                match valid.filter(own).filter(|grant| grant.token == token) {
                    Some(_) => {
                        self.memo = memo;
                        LeaseEffect::Stored
                    }
                    None => LeaseEffect::NotHeld,
                }
            }
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
