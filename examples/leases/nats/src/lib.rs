//! A lease engine for NATS JetStream 2.11 or later: a message for each lease.
//!
//! | file | what |
//! | --- | --- |
//! | `store` | the stream and its requests |
//! | `subject` | the subject of a lease |
//! | `problem` | errors, with what to do about them |
//!
//! # Invariants
//!
//! 1. A yes is only ever the server's answer to a compare-and-set. A read decides what to compare with, or answers *no*.
//! 2. Each message of a lease has a TTL. Without one it would never expire.
//! 3. The token of a grant is the sequence of the message that granted it. The messages that renew it contain that token.
//! 4. A memo is a message on a separate subject, without a TTL. The server stores it only while the last message of the
//!    lease is the one of its holder, so an earlier holder can't replace it.

mod problem;
mod store;
mod subject;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::Client;
use async_trait::async_trait;
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};

use self::store::{Record, Store};

/// How often a request is repeated after a conflict.
const ATTEMPTS: u32 = 3;

/// Leases in a stream of NATS JetStream: a message for each lease, which the server removes at its expiry.
///
/// The memo of a lease is a second message, which stays. How long a lease lasts yet is unknown to
/// [`holder`](LeaseEngine::holder), because the server doesn't tell its time.
///
/// Clones share the client. Give each child a clone of one engine.
///
/// # Example
///
/// ```no_run
/// # async fn lease() -> Result<(), Box<dyn std::error::Error>> {
/// use verger::lease::Lease;
/// use verger_lease_nats::Nats;
///
/// let engine = Nats::new(async_nats::connect("nats.internal").await?);
/// engine.create_stream(3).await?;
/// let lease = Lease::new("billing", engine);
/// # let _ = lease;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Nats {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    /// The leases that were granted or renewed through this engine, by name. It saves a read before each renewal.
    held: Mutex<HashMap<Arc<str>, Held>>,
}

#[derive(Clone, Copy)]
struct Held {
    token: FencingToken,
    /// The sequence of the last message.
    sequence: u64,
}

impl Nats {
    /// Creates an engine that uses the stream `verger_leases`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_stream(client, "verger_leases")
    }

    /// Creates an engine that uses this stream. Its subjects begin with the name of the stream and a dot.
    #[must_use]
    pub fn with_stream(client: Client, stream: impl Into<String>) -> Self {
        let store = Store::new(client, stream.into());
        Self { shared: Arc::new(Shared { store, held: Mutex::default() }) }
    }

    /// Creates the stream with this number of replicas, unless it exists with the same settings.
    ///
    /// # Errors
    ///
    /// If the server refuses or is too old.
    pub async fn create_stream(&self, replicas: usize) -> Result<(), LeaseError> {
        self.shared.store.create(replicas).await
    }

    fn held<T>(&self, with: impl FnOnce(&mut HashMap<Arc<str>, Held>) -> T) -> T {
        with(&mut self.shared.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the sequence of the last message that is known, if it belongs to this grant.
    fn known(&self, claim: &Claim, token: FencingToken) -> Option<u64> {
        self.held(|held| {
            held.get(claim.name()).filter(|it| it.token == token).map(|it| it.sequence)
        })
    }

    fn remember(&self, claim: &Claim, token: FencingToken, sequence: u64) {
        self.held(|held| held.insert(Arc::clone(claim.name()), Held { token, sequence }));
    }

    fn forget(&self, claim: &Claim, token: FencingToken) {
        self.held(|held| {
            if held.get(claim.name()).is_some_and(|it| it.token == token) {
                held.remove(claim.name());
            }
        });
    }

    /// Reads the sequence of the last message. `None` if it belongs to a different grant, or there is none.
    async fn current(
        &self,
        claim: &Claim,
        token: FencingToken,
        subject: &str,
    ) -> Result<Option<u64>, LeaseError> {
        let record = self.shared.store.read(subject).await?;
        let own = record.filter(|it| it.token == token && it.holder == *claim.holder());
        Ok(own.map(|it| it.sequence))
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("stream", &self.shared.store.name()).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseEngine for Nats {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let store = &self.shared.store;
        let subject = store.subject(claim.name())?;
        store.check().await?;
        // A standby publishes nothing while the lease is held.
        let expected = match store.read(&subject).await? {
            Some(Record { holder, .. }) if holder != *claim.holder() => {
                return Ok(Acquired::Held { by: Some(holder) });
            }
            Some(own) => own.sequence,
            None => 0,
        };
        match store.replace(&subject, expected, claim, None).await? {
            Some(sequence) => {
                let token = FencingToken::new(sequence);
                self.remember(claim, token, sequence);
                Ok(Acquired::Granted(token))
            }
            None => Ok(Acquired::Held { by: None }),
        }
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        let store = &self.shared.store;
        let subject = store.subject(claim.name())?;
        store.check().await?;
        let mut known = self.known(claim, token);
        for _ in 0..ATTEMPTS {
            let expected = match known.take() {
                Some(sequence) => sequence,
                None => match self.current(claim, token, &subject).await? {
                    Some(sequence) => sequence,
                    None => {
                        self.forget(claim, token);
                        return Ok(Renewed::Lost);
                    }
                },
            };
            if let Some(sequence) = store.replace(&subject, expected, claim, Some(token)).await? {
                self.remember(claim, token, sequence);
                return Ok(Renewed::Extended);
            }
            // The lease may be lost, or an earlier renewal has had its effect without an answer.
        }
        Err(problem::conflict(claim.name()))
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        let store = &self.shared.store;
        let subject = store.subject(claim.name())?;
        let mut known = self.known(claim, token);
        self.forget(claim, token);
        for _ in 0..ATTEMPTS {
            let sequence = match known.take() {
                Some(sequence) => sequence,
                None => match self.current(claim, token, &subject).await? {
                    Some(sequence) => sequence,
                    None => return Ok(Released::NotHeld),
                },
            };
            if store.delete(sequence).await? {
                return Ok(Released::Released);
            }
        }
        Err(problem::conflict(claim.name()))
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        let store = &self.shared.store;
        let (subject, memo) = (store.subject(name)?, store.memo_subject(name)?);
        let record = match store.read(&subject).await? {
            Some(Record { holder, token, .. }) => {
                LeaseRecord::held().with_holder(holder).with_token(token)
            }
            None => LeaseRecord::free(),
        };
        // Afterwards, so that it isn't older than the grant.
        Ok(record.with_memo(store.read_memo(&memo).await?))
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
        let store = &self.shared.store;
        let (subject, to) = (store.subject(claim.name())?, store.memo_subject(claim.name())?);
        store.check().await?;
        for _ in 0..ATTEMPTS {
            // Read each time: what is known without a read doesn't tell the holder.
            let Some(sequence) = self.current(claim, token, &subject).await? else {
                return Ok(MemoWrite::NotHeld);
            };
            if store.write_memo(&to, memo, &subject, sequence).await? {
                return Ok(MemoWrite::Stored);
            }
            // The lease may be lost, or it was renewed meanwhile.
        }
        Err(problem::conflict(claim.name()))
    }
}
