use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::*;
use crate::panic::CatchPanic;
use crate::testing::MemoryLeases;

const TTL: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_store_in_memory_keeps_the_rules_and_can_be_checked_again() {
    let engine = MemoryLeases::new();
    for _ in 0..2 {
        let began = now();
        assert_lease_rules(engine.clone(), "a", TTL).await;
        // A half until the renewal, one until the expiry, and two for the next.
        assert_eq!(now() - began, Duration::from_secs(7));
        assert_eq!((engine.holder("a"), engine.holder("a-other")), (None, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shared_engine_keeps_the_rules_as_well() {
    let engine: Arc<dyn LeaseEngine> = Arc::new(MemoryLeases::new());
    assert_lease_rules(engine, "a", TTL).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_still_held_is_waited_for() {
    let engine = MemoryLeases::new();
    let claim = Claim::new("a", "before", TTL);
    engine.acquire(&claim).await.unwrap();
    assert_lease_rules(engine, "a", TTL).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_answers_slowly_keeps_the_rules() {
    let engine = MemoryLeases::new();
    engine.delay(Duration::from_millis(100));
    assert_lease_rules(engine, "a", TTL).await;
}

/// What an engine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    GrantsToAll,
    IgnoresTheName,
    SameToken,
    RestartsAfterARelease,
    RefusesItsHolder,
    KeepsTheToken,
    RenewsWithAnOldToken,
    ReleasesWithAnOldToken,
    ReleasesNothing,
    ExpiresEarly,
    ExpiresNever,
    DoesNotRenew,
    RevivesTheExpired,
    IsStuckAfterADrop,
    ShowsNoHolder,
    ShowsTheLastHolder,
    StoresForAnybody,
    ForgetsTheMemo,
    Fails,
}

/// A store in memory with a fault that no store may have.
#[derive(Clone, Debug)]
struct Faulty {
    wrong: Wrong,
    inner: MemoryLeases,
    /// The last token of the store.
    last: Arc<AtomicU64>,
    /// By how much the tokens of the store are higher than those of the answers.
    ahead: Arc<AtomicU64>,
    busy: Arc<tokio::sync::Semaphore>,
}

impl Faulty {
    fn new(wrong: Wrong) -> Self {
        let busy = Arc::new(tokio::sync::Semaphore::new(1));
        Self {
            wrong,
            inner: MemoryLeases::new(),
            last: Arc::default(),
            ahead: Arc::default(),
            busy,
        }
    }

    fn claim(&self, claim: &Claim) -> Claim {
        let name = match self.wrong {
            Wrong::IgnoresTheName => "all".into(),
            Wrong::GrantsToAll => Arc::clone(claim.holder()),
            _ => Arc::clone(claim.name()),
        };
        let ttl = match self.wrong {
            Wrong::ExpiresEarly => claim.ttl() * 9 / 10,
            Wrong::ExpiresNever => claim.ttl() * 100,
            _ => claim.ttl(),
        };
        Claim::new(name, Arc::clone(claim.holder()), ttl)
    }

    /// Answers after other tasks have run.
    async fn work(&self) {
        let permit = self.busy.acquire().await.unwrap();
        if self.wrong == Wrong::IsStuckAfterADrop {
            // Lost if the request is dropped now.
            permit.forget();
            tokio::task::yield_now().await;
            self.busy.add_permits(1);
        }
    }

    /// Returns the token that the store is asked with.
    fn token(&self, token: FencingToken, ignored: &[Wrong]) -> FencingToken {
        if ignored.contains(&self.wrong) {
            return FencingToken::new(self.last.load(Ordering::Relaxed));
        }
        FencingToken::new(token.get() + self.ahead.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl LeaseEngine for Faulty {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        self.work().await;
        if self.wrong == Wrong::Fails {
            return Err(LeaseError::new("no route").with_hint("start the server"));
        }
        let of = self.claim(claim);
        let holder = self.inner.holder(of.name());
        let last = FencingToken::new(self.last.load(Ordering::Relaxed));
        match self.wrong {
            Wrong::RefusesItsHolder if holder.as_ref() == Some(of.holder()) => {
                return Ok(Acquired::Held { by: holder });
            }
            Wrong::KeepsTheToken if holder.as_ref() == Some(of.holder()) => {
                return Ok(Acquired::Granted(last));
            }
            _ => {}
        }
        let acquired = self.inner.acquire(&of).await?;
        let Acquired::Granted(token) = acquired else { return Ok(acquired) };
        self.last.store(token.get(), Ordering::Relaxed);
        Ok(Acquired::Granted(match self.wrong {
            Wrong::SameToken => FencingToken::new(1),
            _ => FencingToken::new(token.get() - self.ahead.load(Ordering::Relaxed)),
        }))
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        self.work().await;
        let ignored = [Wrong::SameToken, Wrong::RenewsWithAnOldToken];
        match self.wrong {
            Wrong::DoesNotRenew => {
                let holds = self.inner.token(claim.name()) == Some(token);
                Ok(if holds { Renewed::Extended } else { Renewed::Lost })
            }
            Wrong::RevivesTheExpired if self.inner.holder(claim.name()).is_none() => {
                Ok(Renewed::Extended)
            }
            _ => self.inner.renew(&self.claim(claim), self.token(token, &ignored)).await,
        }
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        self.work().await;
        if self.wrong == Wrong::ReleasesNothing {
            return Ok(Released::Released);
        }
        let token = self.token(token, &[Wrong::SameToken, Wrong::ReleasesWithAnOldToken]);
        let released = self.inner.release(&self.claim(claim), token).await?;
        if self.wrong == Wrong::RestartsAfterARelease && **claim.name() == *"a" {
            self.ahead.store(self.last.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(released)
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        let record = LeaseEngine::holder(&self.inner, name).await?;
        Ok(match self.wrong {
            Wrong::ShowsNoHolder => LeaseRecord::free().with_memo(*record.memo()),
            Wrong::ShowsTheLastHolder => LeaseRecord::held().with_memo(*record.memo()),
            Wrong::ForgetsTheMemo if !record.is_held() => LeaseRecord::free(),
            _ => record,
        })
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
        let written = self.inner.write_memo(claim, token, memo).await;
        if self.wrong == Wrong::StoresForAnybody { Ok(MemoWrite::Stored) } else { written }
    }
}

/// An engine whose store has no place for a memo.
#[derive(Clone, Debug, Default)]
struct WithoutMemos(MemoryLeases);

#[async_trait]
impl LeaseEngine for WithoutMemos {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        self.0.acquire(claim).await
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        self.0.renew(claim, token).await
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        self.0.release(claim, token).await
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        LeaseEngine::holder(&self.0, name).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stores_no_memos_keeps_the_rules() {
    let engine = WithoutMemos::default();
    assert_lease_rules(engine.clone(), "a", TTL).await;
    assert_eq!(engine.0.holder("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_broken_is_named_with_the_answer() {
    let after_release =
        "rule 3: a lease is granted again after a release, with a higher token; but";
    let own = "rule 5: a holder is granted its own lease again, with a higher token; but";
    let expires =
        "rule 2: a lease expires one ttl after the last request that renewed it; but `acquire`";
    let old = "rule 4: an older token than the last one has no effect; but";
    let dropped = "a request that is dropped leaves the engine usable; but `acquire`";
    let shows = "rule 6: `holder` names the holder of the last grant; but `holder`";
    for (wrong, expected, answer) in [
        (
            Wrong::GrantsToAll,
            "rule 1: a lease that is held is granted to no other holder; but `acquire`",
            "answered with Granted(FencingToken(1))",
        ),
        (Wrong::IgnoresTheName, "a lease with a different name is free; but", "answered with Lost"),
        (Wrong::SameToken, after_release, "granted with the token 1 after 1"),
        (Wrong::RestartsAfterARelease, after_release, "granted with the token 1 after 1"),
        (Wrong::ReleasesNothing, after_release, "\") }"),
        (Wrong::RefusesItsHolder, own, "\") }"),
        (Wrong::KeepsTheToken, own, "granted with the token 2 after 2"),
        (Wrong::RenewsWithAnOldToken, old, "answered with Extended"),
        (Wrong::ReleasesWithAnOldToken, old, "answered with Released"),
        (Wrong::ExpiresEarly, expires, "granted after 1.8s"),
        (Wrong::DoesNotRenew, expires, "granted after 1s"),
        (Wrong::ExpiresNever, expires, "not granted within 4s"),
        (
            Wrong::RevivesTheExpired,
            "a lease that has expired can't be renewed, also if no other holder has it; but `renew`",
            "answered with Extended",
        ),
        (Wrong::IsStuckAfterADrop, dropped, "not answered within 2s"),
        (
            Wrong::ShowsNoHolder,
            shows,
            "is_held: false, holder: None, token: None, remaining: None, memo: Memo(\"\") }",
        ),
        (
            Wrong::ShowsTheLastHolder,
            shows,
            "is_held: true, holder: None, token: None, remaining: None, memo: Memo(\"\") }",
        ),
        (
            Wrong::StoresForAnybody,
            "rule 7: a memo isn't stored after the expiry; but `write_memo`",
            "answered with Stored",
        ),
        (
            Wrong::ForgetsTheMemo,
            "rule 7: the memo that was stored last is returned; but `holder`",
            "memo: Memo(\"\") }",
        ),
        (
            Wrong::Fails,
            "at the beginning; but `acquire` of `a` by `a-",
            "no route: start the server",
        ),
    ] {
        let check = assert_lease_rules(Faulty::new(wrong), "a", TTL);
        let text = CatchPanic(Box::pin(check)).await.expect_err("a broken rule");
        let text = text.message();
        assert!(text.starts_with(expected) && text.ends_with(answer), "{wrong:?}: {text}");
    }
}
