//! The requests to a lease engine, and its answers.
//!
//! An engine knows one store and its requests. It doesn't know when they are sent, how long an answer counts, or what
//! follows from it: that is the guard's part.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::record::{LeaseRecord, Memo};
pub(super) use crate::child::FencingToken;

/// A store of leases: a locked file, a database, a coordination service.
///
/// Each lease has a name, and at most one holder at a time. Implement this trait to guard children with a store that
/// verger has no engine for. `testing::assert_lease_rules` checks it, with the feature `testing`.
///
/// Each method has three answers: yes, no, and an error, which means that the answer is unknown. A request whose answer
/// is unknown may have had its effect, so the child that the lease guards runs only after a *yes*.
///
/// # Rules
///
/// 1. Until a granted lease expires or is released, [`acquire`](Self::acquire) grants it to no other holder.
/// 2. A lease expires [`Claim::ttl`] after the store has received the last request that granted or renewed it, by the
///    clock of the store. The clock of the caller plays no part.
/// 3. Each grant has a higher [`FencingToken`] than all grants of this name before it, also after a release.
/// 4. A [`renew`](Self::renew) or [`release`](Self::release) with an older token than the last one has no effect, and
///    answers *no*.
/// 5. A holder that acquires the lease which it holds already is granted it again, with a higher token. A guard does
///    this if it never received the first answer.
/// 6. [`holder`](Self::holder) names the holder of the last grant until that expires or is released, and changes nothing.
/// 7. A memo is stored by the holder of the last grant alone, with its token, and until that grant expires or is released.
///    The store returns the memo that was stored last, also after a release, after an expiry, and to the next holders.
///
/// The example of [`File`](super::File) acquires a lease.
///
/// # Cancel safety
///
/// Each future may be dropped before it has answered: a guard drops a request that takes too long. The request
/// may still have its effect then.
#[async_trait]
pub trait LeaseEngine: fmt::Debug + Send + Sync + 'static {
    /// Asks for the lease.
    ///
    /// # Errors
    ///
    /// If the answer is unknown: the store can't be reached, refuses the request, or answers something else.
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError>;

    /// Extends the lease by [`Claim::ttl`], counted from now.
    ///
    /// # Errors
    ///
    /// If the answer is unknown.
    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError>;

    /// Gives the lease back, so that it is granted to the next holder at once.
    ///
    /// # Errors
    ///
    /// If the answer is unknown.
    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError>;

    /// Returns who has the lease with this name, for how long yet, and its memo.
    ///
    /// It acquires nothing, so it delays no holder and needs no claim. A lease that was never granted is free. The answer
    /// is true for the moment at which the store gave it: use it to show or to find a holder, and never in place of a grant.
    ///
    /// A holder that reads its memo sends this after its grant. No earlier holder can write the memo any more then.
    ///
    /// ```
    /// use verger::lease::{LeaseEngine, LeaseError, Owner};
    ///
    /// /// Says where the present leader can be reached.
    /// async fn leader(engine: &impl LeaseEngine) -> Result<String, LeaseError> {
    ///     let record = engine.holder("billing").await?;
    ///     Ok(match record.holder() {
    ///         Some(holder) => format!("ask {}", Owner::of(holder.clone())),
    ///         None if record.is_held() => "somebody has it".to_owned(),
    ///         None => "nobody has it".to_owned(),
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the answer is unknown.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError>;

    /// Returns whether the engine can [store a memo](Self::write_memo). Default: `false`.
    ///
    /// `build` asks before it accepts what needs one, such as a job that makes up for missed runs and has a lease. It doesn't
    /// ask the store.
    fn stores_memos(&self) -> bool {
        false
    }

    /// Stores a memo with the lease, if the holder of this claim has it with this token.
    ///
    /// The memo replaces the last one, and [`holder`](Self::holder) returns it from then on. An engine that has this method
    /// returns `true` from [`stores_memos`](Self::stores_memos). A store that can't keep
    /// one needs no such method: by default, the answer is an error whose
    /// [`is_unsupported`](LeaseError::is_unsupported) is `true`.
    ///
    /// ```
    /// use verger::lease::{Claim, FencingToken, LeaseEngine, LeaseError, Memo, MemoWrite};
    ///
    /// /// Notes which invoice was the last. Returns whether this process still has the lease.
    /// async fn note(
    ///     engine: &impl LeaseEngine,
    ///     claim: &Claim,
    ///     token: FencingToken,
    ///     invoice: u64,
    /// ) -> Result<bool, LeaseError> {
    ///     let memo = Memo::new(invoice.to_be_bytes()).expect("8 bytes");
    ///     match engine.write_memo(claim, token, &memo).await {
    ///         Ok(written) => Ok(written == MemoWrite::Stored),
    ///         // The next holder begins with the first invoice.
    ///         Err(error) if error.is_unsupported() => Ok(true),
    ///         Err(error) => Err(error),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the answer is unknown, or if the engine can't store a memo.
    ///
    /// # Cancel safety
    ///
    /// A write that is dropped before it has answered may still be stored, even after a later one, until the grant expires or
    /// is released. The memo is never a mixture of two.
    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        // An engine that can store one uses them.
        let _ = (claim, token, memo);
        Err(LeaseError::unsupported("store a memo"))
    }
}

/// So that one engine can be shared by leases, also if it isn't `Clone`.
#[async_trait]
impl<E: LeaseEngine + ?Sized> LeaseEngine for Arc<E> {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        (**self).acquire(claim).await
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        (**self).renew(claim, token).await
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        (**self).release(claim, token).await
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        (**self).holder(name).await
    }

    // Not the defaults of the trait, which the inner engine may replace.
    fn stores_memos(&self) -> bool {
        (**self).stores_memos()
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        (**self).write_memo(claim, token, memo).await
    }
}

/// What a guard asks a [`LeaseEngine`] for: which lease, for which holder, and for how long.
///
/// The example of [`File`](super::File) makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    name: Arc<str>,
    holder: Arc<str>,
    ttl: Duration,
}

impl Claim {
    /// Creates a claim. Only a guard and tests of an engine need one.
    pub fn new(name: impl Into<Arc<str>>, holder: impl Into<Arc<str>>, ttl: Duration) -> Self {
        Self { name: name.into(), holder: holder.into(), ttl }
    }

    /// The name of the lease.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The holder that asks. Unique among all processes, and among the guards of one process.
    #[must_use]
    pub fn holder(&self) -> &Arc<str> {
        &self.holder
    }

    /// How long the lease is granted for.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }
}

/// The answer to a request for a lease.
///
/// The example of [`File`](super::File) matches one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// Yes. The lease is granted, with this token.
    Granted(FencingToken),
    /// No. Another holder has the lease.
    Held {
        /// That holder, if the store knows it.
        by: Option<Arc<str>>,
    },
}

/// The answer to a request to extend a lease.
///
/// ```
/// use verger::lease::{Claim, FencingToken, LeaseEngine, LeaseError, Released, Renewed};
///
/// /// Extends the lease once more, and gives it back.
/// async fn last_term(
///     engine: &impl LeaseEngine,
///     claim: &Claim,
///     token: FencingToken,
/// ) -> Result<bool, LeaseError> {
///     if engine.renew(claim, token).await? == Renewed::Lost {
///         return Ok(false);
///     }
///     // The last work.
///     Ok(engine.release(claim, token).await? == Released::Released)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// Yes. The lease is extended.
    Extended,
    /// No. The lease has expired, or another holder has it.
    Lost,
}

/// The answer to a request to give a lease back.
///
/// The example of [`Renewed`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Yes. The next holder is granted the lease at once.
    Released,
    /// No. The lease had been lost before.
    NotHeld,
}

/// The answer to a request to store a memo.
///
/// The example of [`LeaseEngine::write_memo`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoWrite {
    /// Yes. The memo is stored.
    Stored,
    /// No. The lease has expired or was released, or it was granted again. The last memo is unchanged.
    NotHeld,
}

/// Why a [`LeaseEngine`] doesn't know the answer.
///
/// ```
/// use verger::lease::LeaseError;
///
/// let error = LeaseError::new("`postgres://db/app` doesn't answer").with_hint("start the server");
/// assert_eq!(error.to_string(), "`postgres://db/app` doesn't answer: start the server");
/// ```
#[derive(Debug)]
pub struct LeaseError {
    problem: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    is_unsupported: bool,
}

impl LeaseError {
    /// Creates an error that says what is wrong, and where.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: None, source: None, is_unsupported: false }
    }

    /// Creates the error of an engine that can't do this, even if its store can be reached.
    ///
    /// ```
    /// use verger::lease::LeaseError;
    ///
    /// let error = LeaseError::unsupported("store a memo");
    /// assert!(error.is_unsupported());
    /// assert_eq!(error.to_string(), "the lease engine can't store a memo: use an engine that can");
    /// assert!(!LeaseError::new("`db:5432` doesn't answer").is_unsupported());
    /// ```
    #[must_use]
    pub fn unsupported(what: &str) -> Self {
        let error = Self::new(format!("the lease engine can't {what}"));
        Self { is_unsupported: true, ..error.with_hint("use an engine that can") }
    }

    /// Returns whether the engine can't do this at all, so that no later request has a different answer.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.is_unsupported
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the error beneath.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LeaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine from before there were memos.
    #[derive(Debug)]
    struct Old;

    #[async_trait]
    impl LeaseEngine for Old {
        async fn acquire(&self, _: &Claim) -> Result<Acquired, LeaseError> {
            Ok(Acquired::Granted(FencingToken::new(1)))
        }

        async fn renew(&self, _: &Claim, _: FencingToken) -> Result<Renewed, LeaseError> {
            Ok(Renewed::Extended)
        }

        async fn release(&self, _: &Claim, _: FencingToken) -> Result<Released, LeaseError> {
            Ok(Released::Released)
        }

        async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
            Ok(LeaseRecord::held().with_holder(name))
        }
    }

    #[tokio::test]
    async fn an_engine_without_memos_has_an_error_that_says_so_also_when_it_is_shared() {
        let (claim, token) = (Claim::new("a", "x", Duration::from_secs(1)), FencingToken::new(1));
        let shared: Arc<dyn LeaseEngine> = Arc::new(Old);
        for engine in [&Old as &dyn LeaseEngine, &shared] {
            let error = engine.write_memo(&claim, token, &Memo::default()).await.unwrap_err();
            assert!(error.is_unsupported(), "{error}");
            assert_eq!(engine.holder("a").await.unwrap().holder().map(|it| &**it), Some("a"));
        }
    }
}
