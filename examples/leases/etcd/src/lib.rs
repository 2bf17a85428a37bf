//! A lease engine for etcd: a key for each lease, attached to a lease of etcd.
//!
//! # Invariants
//!
//! 1. The key is written by a transaction that compares its revision, and by nothing else. A renewal doesn't write it,
//!    so its `mod_revision` is the same for the whole grant: the token.
//! 2. A keep-alive alone is no yes: the lease of etcd may be alive while the key belongs to a later grant.
//! 3. All reads are linearizable.
//! 4. A memo has a separate key, without a lease of etcd. It is written by a transaction that compares the key of the
//!    lease, so an earlier holder can't write it.

mod problem;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{
    Client, Compare, CompareOp, Error, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse,
};
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};

/// The longest TTL: a hundred years. The server refuses much longer ones.
const LONGEST_TTL: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Leases in etcd: a key for each lease, which the server removes at its expiry.
///
/// The memo of a lease is a second key, which stays: the name of the lease, a zero byte, and `memo`. So the name of a lease
/// may contain no zero byte.
///
/// Clones share the client. Give each child a clone of one engine.
///
/// # Example
///
/// ```no_run
/// # async fn lease() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use etcd_client::{Client, ConnectOptions};
/// use verger::lease::Lease;
/// use verger_lease_etcd::Etcd;
///
/// // So that a connection to a machine that is gone is noticed. The server refuses more than one ping in 5 s.
/// let options =
///     ConnectOptions::new().with_keep_alive(Duration::from_secs(6), Duration::from_secs(3));
/// let client = Client::connect(["http://etcd.internal:2379"], Some(options)).await?;
/// let lease = Lease::new("billing", Etcd::new(client));
/// # let _ = lease;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Etcd {
    client: Client,
    prefix: Arc<str>,
    /// The lease of etcd for each grant of this engine, by name. It saves a read before each renewal.
    granted: Arc<Mutex<HashMap<Arc<str>, Granted>>>,
}

#[derive(Clone, Copy)]
struct Granted {
    token: FencingToken,
    lease: i64,
}

/// What a linearizable read has returned.
struct Current {
    key: Option<KeyValue>,
    /// The term of the member's leader.
    term: u64,
}

impl Etcd {
    /// Creates an engine whose keys begin with `verger/leases/`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_prefix(client, "verger/leases/")
    }

    /// Creates an engine whose keys begin with this prefix.
    #[must_use]
    pub fn with_prefix(client: Client, prefix: impl Into<Arc<str>>) -> Self {
        Self { client, prefix: prefix.into(), granted: Arc::default() }
    }

    /// Returns a comparison for a transaction of the program: it fails once the lease has expired, was released, or
    /// was granted again since this token.
    #[must_use]
    pub fn fence(&self, name: &str, token: FencingToken) -> Compare {
        // No key has a negative revision.
        let revision = i64::try_from(token.get()).unwrap_or(-1);
        Compare::mod_revision(self.key(name), CompareOp::Equal, revision)
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn memo_key(&self, name: &str) -> String {
        format!("{}{name}\0memo", self.prefix)
    }

    fn granted<T>(&self, with: impl FnOnce(&mut HashMap<Arc<str>, Granted>) -> T) -> T {
        with(&mut self.granted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn forget(&self, claim: &Claim, token: FencingToken) {
        self.granted(|granted| {
            if granted.get(claim.name()).is_some_and(|it| it.token == token) {
                granted.remove(claim.name());
            }
        });
    }

    async fn read(&self, name: &str) -> Result<Current, LeaseError> {
        let answer = self.client.clone().get(self.key(name), None).await;
        let mut answer = answer.map_err(|error| problem::request("read a lease", error))?;
        let term = answer.header().map(|it| it.raft_term()).unwrap_or_default();
        Ok(Current { key: answer.take_kvs().into_iter().next(), term })
    }

    /// Returns the lease of etcd that this grant has, or `None` if it is lost.
    async fn lease(&self, claim: &Claim, token: FencingToken) -> Result<Option<i64>, LeaseError> {
        let known = self.granted(|granted| granted.get(claim.name()).copied());
        if let Some(known) = known.filter(|it| it.token == token) {
            return Ok(Some(known.lease));
        }
        let key = self.read(claim.name()).await?.key;
        Ok(key.filter(|it| belongs_to(it, claim, token)).map(|it| it.lease()))
    }

    /// Sends a keep-alive. Returns the term of the member's leader, or `None` if the lease of etcd doesn't exist.
    async fn keep_alive(&self, lease: i64) -> Result<Option<u64>, LeaseError> {
        let failed = |error| problem::request("keep a lease alive", error);
        // The client discards the answer to the first message, and with it the term.
        let (mut keeper, mut answers) = match self.client.clone().lease_keep_alive(lease).await {
            Ok(stream) => stream,
            Err(Error::LeaseKeepAliveError(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        keeper.keep_alive().await.map_err(failed)?;
        match answers.message().await.map_err(failed)? {
            Some(answer) if answer.ttl() > 0 => {
                Ok(Some(answer.header().map(|it| it.raft_term()).unwrap_or_default()))
            }
            Some(_) => Ok(None),
            None => Err(problem::ended()),
        }
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseEngine for Etcd {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        check_name(claim.name())?;
        // A standby writes nothing while the lease is held.
        let current = self.read(claim.name()).await?.key;
        let expected = match &current {
            Some(key) if key.value() != claim.holder().as_bytes() => return Ok(held(Some(key))),
            Some(own) => own.mod_revision(),
            None => 0,
        };
        let mut client = self.client.clone();
        // If its transaction fails or this request is dropped, it expires without a key.
        let lease = client.lease_grant(seconds(claim.ttl()), None).await;
        let lease = lease.map_err(|error| problem::request("grant a lease", error))?.id();
        let key = self.key(claim.name());
        let attached = PutOptions::new().with_lease(lease);
        let transaction = Txn::new()
            .when([Compare::mod_revision(key.clone(), CompareOp::Equal, expected)])
            .and_then([TxnOp::put(key.clone(), &**claim.holder(), Some(attached))])
            .or_else([TxnOp::get(key, None)]);
        let answer = client.txn(transaction).await;
        let answer = answer.map_err(|error| problem::request("write a lease", error))?;
        if !answer.succeeded() {
            let operations = answer.op_responses();
            let Some(TxnOpResponse::Get(current)) = operations.first() else {
                return Ok(held(None));
            };
            let other = current.kvs().iter().find(|it| it.value() != claim.holder().as_bytes());
            return Ok(held(other));
        }
        let revision = answer.header().ok_or_else(problem::no_header)?.revision();
        let token = FencingToken::new(revision.unsigned_abs());
        let granted = Granted { token, lease };
        self.granted(|all| all.insert(Arc::clone(claim.name()), granted));
        Ok(Acquired::Granted(token))
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        let Some(lease) = self.lease(claim, token).await? else { return Ok(Renewed::Lost) };
        let term = self.keep_alive(lease).await?;
        // Afterwards, so that the key was this grant's when the lease of etcd was extended already.
        let current = self.read(claim.name()).await?;
        if !current.key.is_some_and(|it| belongs_to(&it, claim, token)) {
            self.forget(claim, token);
            return Ok(Renewed::Lost);
        }
        match term {
            Some(term) if term == current.term => Ok(Renewed::Extended),
            // A leader that was replaced has extended the lease, and the next one doesn't know.
            Some(_) => Err(problem::leader()),
            // The server is about to remove the key.
            None => Err(problem::expired()),
        }
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        self.forget(claim, token);
        let transaction = Txn::new()
            .when([self.fence(claim.name(), token)])
            .and_then([TxnOp::delete(self.key(claim.name()), None)]);
        let answer = self.client.clone().txn(transaction).await;
        let answer = answer.map_err(|error| problem::request("delete a lease", error))?;
        Ok(if answer.succeeded() { Released::Released } else { Released::NotHeld })
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        check_name(name)?;
        let mut client = self.client.clone();
        // Both keys at one moment. A transaction that only reads is as linearizable as a read.
        let reads = [TxnOp::get(self.key(name), None), TxnOp::get(self.memo_key(name), None)];
        let answer = client.txn(Txn::new().and_then(reads)).await;
        let answer = answer.map_err(|error| problem::request("read a lease", error))?;
        let keys = answer.op_responses().into_iter().map(|read| match read {
            TxnOpResponse::Get(mut read) => read.take_kvs().into_iter().next(),
            _ => None,
        });
        let keys: Vec<_> = keys.collect();
        let [lease, memo] = &keys[..] else { return Err(problem::no_header()) };
        let mut record = match lease {
            Some(key) => LeaseRecord::held()
                .with_holder(String::from_utf8_lossy(key.value()))
                .with_token(FencingToken::new(key.mod_revision().unsigned_abs())),
            None => LeaseRecord::free(),
        };
        if let Some(key) = lease
            // Without an answer, only the time is unknown. It is negative if the lease of etcd is gone.
            && let Ok(left) = client.lease_time_to_live(key.lease(), None).await
            && let Ok(seconds) = u64::try_from(left.ttl())
        {
            record = record.with_remaining(Duration::from_secs(seconds));
        }
        let Some(memo) = memo else { return Ok(record) };
        let memo = Memo::new(memo.value()).map_err(|error| problem::memo(name, error))?;
        Ok(record.with_memo(memo))
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
        check_name(claim.name())?;
        let key = self.key(claim.name());
        let holds = Compare::value(key, CompareOp::Equal, &**claim.holder());
        let transaction = Txn::new()
            .when([self.fence(claim.name(), token), holds])
            .and_then([TxnOp::put(self.memo_key(claim.name()), memo.as_bytes(), None)]);
        let answer = self.client.clone().txn(transaction).await;
        let answer = answer.map_err(|error| problem::request("write a memo", error))?;
        Ok(if answer.succeeded() { MemoWrite::Stored } else { MemoWrite::NotHeld })
    }
}

/// Checks that no memo of another lease has the key of this one.
fn check_name(name: &str) -> Result<(), LeaseError> {
    if name.contains('\0') { Err(problem::name(name)) } else { Ok(()) }
}

fn held(key: Option<&KeyValue>) -> Acquired {
    Acquired::Held { by: key.map(|it| String::from_utf8_lossy(it.value()).into()) }
}

fn belongs_to(key: &KeyValue, claim: &Claim, token: FencingToken) -> bool {
    key.mod_revision().unsigned_abs() == token.get() && key.value() == claim.holder().as_bytes()
}

/// Returns a TTL in whole seconds, rounded up.
fn seconds(ttl: Duration) -> i64 {
    let ttl = ttl.min(LONGEST_TTL);
    i64::try_from(ttl.as_millis().div_ceil(1000).max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_a_memo_is_refused() {
        let error = check_name("app\0memo").unwrap_err().to_string();
        assert_eq!(
            error,
            "the name `app\\u{0}memo` has a zero byte: choose a name of a lease without one"
        );
        check_name("it's \"quoted\"/ ä").unwrap();
    }

    #[test]
    fn a_ttl_is_rounded_up() {
        for (millis, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (15_000, 15)] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
        assert_eq!(seconds(Duration::MAX).unsigned_abs(), LONGEST_TTL.as_secs());
    }
}
