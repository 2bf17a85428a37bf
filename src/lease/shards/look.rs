//! Requests that show who has a lease.
//!
//! An engine has no request to read a lease. So a member asks for it under a name that marks it as one that only looks,
//! and gives it back at once if it is granted.

use std::sync::Arc;

use tokio::time::timeout;

use super::super::call::request;
use super::super::engine::{Acquired, Claim, FencingToken};
use super::super::guard::{Answer, Request};
use super::super::spec::Lease;
use super::steps::Seen;

/// The first character of the name of a holder that only looks.
const LOOKS: char = '?';

/// How often a lease that was granted to a look is given back, if it isn't known whether that was done.
const RELEASES: u32 = 3;

/// What a request has shown.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) seen: Seen,
    /// Who has the lease, if it is taken and the engine knows that.
    pub(super) holder: Option<Arc<str>>,
    /// Why the answer is unknown, if it is.
    pub(super) problem: Option<Arc<str>>,
}

/// Returns the name under which `holder` looks.
pub(super) fn looking(holder: &str) -> Arc<str> {
    format!("{LOOKS}{holder}").into()
}

/// Returns whether the holder only looks.
pub(super) fn only_looks(holder: &str) -> bool {
    holder.starts_with(LOOKS)
}

/// Requests the lease for a holder that keeps it.
pub(super) async fn keep(lease: Lease, holder: Arc<str>) -> Sight {
    match acquire(&lease, &claim(&lease, holder)).await {
        Ok(Acquired::Granted(_)) => Sight { seen: Seen::Mine, holder: None, problem: None },
        Ok(Acquired::Held { by }) => held(by),
        Err(problem) => unknown(problem),
    }
}

/// Requests the lease for a holder that [only looks](looking).
pub(super) async fn look(lease: Lease, holder: Arc<str>) -> Sight {
    let claim = claim(&lease, holder);
    match acquire(&lease, &claim).await {
        Ok(Acquired::Granted(token)) => {
            release(&lease, &claim, token).await;
            Sight { seen: Seen::Free, holder: None, problem: None }
        }
        Ok(Acquired::Held { by }) => held(by),
        Err(problem) => unknown(problem),
    }
}

fn claim(lease: &Lease, holder: Arc<str>) -> Claim {
    Claim::new(Arc::clone(lease.name()), holder, lease.times.ttl)
}

async fn acquire(lease: &Lease, claim: &Claim) -> Result<Acquired, Arc<str>> {
    match send(lease, claim, Request::Acquire).await {
        Answer::Acquired(acquired) => Ok(acquired),
        Answer::Unknown(problem) => Err(problem),
        Answer::Renewed(_) | Answer::Released(_) => Err("the answer to a different request".into()),
    }
}

async fn release(lease: &Lease, claim: &Claim, token: FencingToken) {
    for _ in 0..RELEASES {
        // Otherwise the lease expires.
        if let Answer::Released(_) = send(lease, claim, Request::Release(token)).await {
            return;
        }
    }
}

async fn send(lease: &Lease, claim: &Claim, what: Request) -> Answer {
    let within = lease.times.request_timeout();
    match timeout(within, request(&lease.engine, claim, what)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => Answer::Unknown(format!("the engine panicked: {panic}").into()),
        Err(_elapsed) => Answer::Unknown(format!("no answer within {within:?}").into()),
    }
}

fn held(by: Option<Arc<str>>) -> Sight {
    let seen = if by.as_deref().is_some_and(only_looks) { Seen::Looked } else { Seen::Taken };
    Sight { seen, holder: by, problem: None }
}

fn unknown(problem: Arc<str>) -> Sight {
    Sight { seen: Seen::Unknown, holder: None, problem: Some(problem) }
}
