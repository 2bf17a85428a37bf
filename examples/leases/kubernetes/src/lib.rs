//! A lease engine for Kubernetes: an object of the kind `Lease` for each lease.
//!
//! | file | what |
//! | --- | --- |
//! | `record` | what an object says, and how it is changed |
//! | `observed` | when this process has seen the objects change |
//! | `problem` | errors, with what to do about them |
//!
//! # Invariants
//!
//! 1. Each write contains the `resourceVersion` that was read, so the server refuses it after any other write.
//! 2. No wall clock decides. A lease has expired once this process has seen its object unchanged for the whole TTL, by
//!    its own monotonic clock.
//! 3. The time for which an object has been unchanged is counted, for a holder, from before the request that wrote it,
//!    and for a standby, from after the answer that showed it.

mod observed;
mod problem;
mod record;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};

use self::observed::Observed;
use self::record::Record;

/// How often a request is repeated after a conflict.
const ATTEMPTS: u32 = 3;

/// Leases in Kubernetes: an object of the kind `Lease` for each lease.
///
/// The memo of a lease is an annotation of its object. Other processes see only that the object has changed, so to them
/// the memo renews the lease.
///
/// Clones share the client, and what they have seen. Give each child a clone of one engine.
///
/// # Example
///
/// ```no_run
/// # async fn lease() -> Result<(), Box<dyn std::error::Error>> {
/// use kube::{Client, Config};
/// use verger::lease::Lease;
/// use verger_lease_kubernetes::Kubernetes;
///
/// let mut config = Config::infer().await?;
/// // The guard repeats requests itself, and at the right time.
/// config.default_retry = false;
/// let lease = Lease::new("billing", Kubernetes::new(Client::try_from(config)?, "shop"));
/// # let _ = lease;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Kubernetes {
    leases: Api<Lease>,
    namespace: Arc<str>,
    observed: Arc<Observed>,
}

impl Kubernetes {
    /// Creates an engine whose objects are in this namespace.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, namespace: namespace.into(), observed: Arc::default() }
    }

    async fn read(&self, name: &str) -> Result<Option<Record>, LeaseError> {
        let lease = self.leases.get_opt(name).await;
        let lease = lease.map_err(|error| problem::request("read a lease", error))?;
        let Some(lease) = lease else { return Ok(None) };
        let record = Record::new(lease)?;
        self.observed.see(name, record.version(), Instant::now());
        Ok(Some(record))
    }

    /// Creates or replaces the object, as it was read. Returns `None` if it has changed since.
    async fn write(&self, name: &str, record: Record) -> Result<Option<()>, LeaseError> {
        let (sent, parameters) = (Instant::now(), PostParams::default());
        let lease = record.into_lease();
        let answer = if lease.metadata.resource_version.is_some() {
            self.leases.replace(name, &parameters, &lease).await
        } else {
            self.leases.create(&parameters, &lease).await
        };
        match answer {
            Ok(lease) => {
                let record = Record::new(lease)?;
                self.observed.write(name, record.version(), sent, Instant::now());
                Ok(Some(()))
            }
            // Replaced, created or deleted meanwhile.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(None),
            Err(error) => Err(problem::request("write a lease", error)),
        }
    }

    /// Reads the object if this grant has it, and if it hasn't expired for the holder.
    async fn own(&self, claim: &Claim, token: FencingToken) -> Result<Option<Record>, LeaseError> {
        let Some(record) = self.read(claim.name()).await? else { return Ok(None) };
        if !record.is_granted(claim.holder(), token) {
            return Ok(None);
        }
        let unchanged = self.observed.since_sent(claim.name(), record.version(), Instant::now());
        Ok((unchanged < record.duration()).then_some(record))
    }
}

impl fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubernetes").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseEngine for Kubernetes {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let name = claim.name();
        record::check_name(name)?;
        let mut record = match self.read(name).await? {
            None => Record::empty(name),
            Some(record) => {
                let unchanged = self.observed.since_seen(name, record.version(), Instant::now());
                match record.holder() {
                    Some(holder)
                        if holder != &**claim.holder() && unchanged < record.duration() =>
                    {
                        return Ok(Acquired::Held { by: Some(holder.into()) });
                    }
                    _ => record,
                }
            }
        };
        let token = record.grant(claim)?;
        Ok(match self.write(name, record).await? {
            Some(()) => Acquired::Granted(token),
            None => Acquired::Held { by: None },
        })
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        record::check_name(claim.name())?;
        for _ in 0..ATTEMPTS {
            let Some(mut record) = self.own(claim, token).await? else { return Ok(Renewed::Lost) };
            record.renew(claim);
            if self.write(claim.name(), record).await?.is_some() {
                return Ok(Renewed::Extended);
            }
        }
        Err(problem::conflict(claim.name()))
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        record::check_name(claim.name())?;
        for _ in 0..ATTEMPTS {
            let Some(mut record) = self.own(claim, token).await? else {
                return Ok(Released::NotHeld);
            };
            record.release();
            if self.write(claim.name(), record).await?.is_some() {
                return Ok(Released::Released);
            }
        }
        Err(problem::conflict(claim.name()))
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        record::check_name(name)?;
        let Some(record) = self.read(name).await? else { return Ok(LeaseRecord::free()) };
        // As a standby counts: this process may have seen the object a moment ago for the first time.
        let unchanged = self.observed.since_seen(name, record.version(), Instant::now());
        let shown = match (record.holder(), record.duration().checked_sub(unchanged)) {
            (Some(holder), Some(remaining)) if !remaining.is_zero() => LeaseRecord::held()
                .with_holder(holder)
                .with_token(record.token())
                .with_remaining(remaining),
            _ => LeaseRecord::free(),
        };
        Ok(shown.with_memo(*record.memo()))
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
        record::check_name(claim.name())?;
        for _ in 0..ATTEMPTS {
            let Some(mut record) = self.own(claim, token).await? else {
                return Ok(MemoWrite::NotHeld);
            };
            record.set_memo(memo);
            if self.write(claim.name(), record).await?.is_some() {
                return Ok(MemoWrite::Stored);
            }
        }
        Err(problem::conflict(claim.name()))
    }
}

/// Returns a TTL in whole seconds, rounded up.
fn seconds(ttl: Duration) -> i32 {
    i32::try_from(ttl.as_millis().div_ceil(1000).max(1)).unwrap_or(i32::MAX)
}
