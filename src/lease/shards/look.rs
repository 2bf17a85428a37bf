//! Requests that show who has a lease.

use std::sync::Arc;

use tokio::time::timeout;

use super::super::call::{Call, look_up, request};
use super::super::engine::{Acquired, Claim};
use super::super::guard::{Answer, Request};
use super::super::spec::Lease;
use super::steps::Seen;

/// What a request has shown.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) seen: Seen,
    /// Who has the lease, if it is taken and the engine knows that.
    pub(super) holder: Option<Arc<str>>,
    /// Why the answer is unknown, if it is.
    pub(super) problem: Option<Arc<str>>,
}

/// Requests the lease for a holder that keeps it.
pub(super) async fn keep(lease: Lease, holder: Arc<str>) -> Sight {
    let claim = Claim::new(Arc::clone(lease.name()), holder, lease.times.ttl);
    match in_time(&lease, request(&lease.engine, &claim, Request::Acquire)).await {
        Ok(Answer::Acquired(Acquired::Granted(_))) => {
            Sight { seen: Seen::Mine, holder: None, problem: None }
        }
        Ok(Answer::Acquired(Acquired::Held { by })) => taken(by),
        Ok(Answer::Unknown(problem)) | Err(problem) => unknown(problem),
        Ok(Answer::Renewed(_) | Answer::Released(_)) => {
            unknown("the answer to a different request".into())
        }
    }
}

/// Looks who has the lease. Cancel safe: it changes nothing in the store.
pub(super) async fn look(lease: Lease) -> Sight {
    match in_time(&lease, look_up(&lease.engine, lease.name())).await {
        Ok(Ok(record)) if record.is_held() => taken(record.holder().cloned()),
        Ok(Ok(_)) => Sight { seen: Seen::Free, holder: None, problem: None },
        Ok(Err(problem)) | Err(problem) => unknown(problem),
    }
}

async fn in_time<T>(lease: &Lease, call: Call<T>) -> Result<T, Arc<str>> {
    let within = lease.times.request_timeout();
    match timeout(within, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(panic)) => Err(format!("the engine panicked: {panic}").into()),
        Err(_elapsed) => Err(format!("no answer within {within:?}").into()),
    }
}

fn taken(holder: Option<Arc<str>>) -> Sight {
    Sight { seen: Seen::Taken, holder, problem: None }
}

fn unknown(problem: Arc<str>) -> Sight {
    Sight { seen: Seen::Unknown, holder: None, problem: Some(problem) }
}
