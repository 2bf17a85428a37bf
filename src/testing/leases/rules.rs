//! Checks whether an engine of leases keeps the rules of its trait.

use std::fmt::{Debug, Display};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::clock::now;
use crate::exit::ExitError;
use crate::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};
use crate::testing::tree::Assertion;

/// How many holders request the lease at once.
const RIVALS: usize = 8;

/// How many requests there are in one ttl, where a check waits for the expiry.
const REQUESTS: u32 = 20;

/// Checks that an engine keeps the [rules](LeaseEngine#rules) of its trait.
///
/// Call it in a test of your own engine, with a store that can be reached. `name` and `name-other` are the names of two
/// leases that nothing else uses; they may have had holders before. `ttl` is how long they are granted for.
///
/// The check takes about five times the `ttl`, in the time of tokio. For a real store, choose a `ttl` that is short and
/// yet longer than many answers take, such as two seconds. A lease may expire up to one `ttl` too late, and never too
/// early.
///
/// It also checks what a guard relies on besides the rules: one of many requests at once is granted, a lease that has
/// expired can't be renewed, and a request that is dropped before it is answered leaves the engine usable. Rule 7 is
/// checked unless the engine [can't](LeaseError::is_unsupported) store memos; the check overwrites the memo of the lease.
///
/// ```
/// use std::time::Duration;
///
/// use verger::testing::{MemoryLeases, assert_lease_rules};
///
/// # /*
/// #[tokio::test]
/// # */
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// async fn my_engine_keeps_the_rules() {
///     // In your test: your engine, connected to a real store.
///     let engine = MemoryLeases::new();
///     assert_lease_rules(engine, "check", Duration::from_secs(2)).await;
/// }
/// # fn main() { my_engine_keeps_the_rules() }
/// ```
///
/// # Panics
///
/// If the engine breaks a rule, with the rule and the answer; and if it answers with an error.
pub fn assert_lease_rules(
    engine: impl LeaseEngine + Clone,
    name: impl Into<Arc<str>>,
    ttl: Duration,
) -> impl Future<Output = ()> {
    let name = name.into();
    Assertion::new(async move {
        let run = fastrand::u32(..);
        let claim = |holder| Claim::new(Arc::clone(&name), format!("{holder}-{run:x}"), ttl);
        Check { a: claim("a"), b: claim("b"), engine, ttl }.run().await
    })
}

/// Two holders of one lease.
struct Check<E> {
    engine: E,
    a: Claim,
    b: Claim,
    ttl: Duration,
}

type Checked<T = ()> = Result<T, String>;

impl<E: LeaseEngine + Clone> Check<E> {
    async fn run(&self) -> Checked {
        // A check that has failed may still have it.
        let (first, _) = self.acquire_in_time(&self.a, "at the beginning").await?;
        let last = self.check_release(first).await?;
        let last = self.check_tokens(last).await?;
        let last = self.check_expiry(last).await?;
        let last = self.check_rivals(last).await?;
        let last = self.check_memo(last).await?;
        self.check_dropped(last).await
    }

    /// `a` has the lease. Afterwards, `b` has it.
    async fn check_release(&self, first: FencingToken) -> Checked<FencingToken> {
        let Self { a, b, .. } = self;
        let rule = "rule 1: a lease that is held is granted to no other holder";
        self.is_held(b, rule).await?;
        self.renew(a, first, Renewed::Extended, "the holder renews its lease").await?;
        self.is_held(b, rule).await?;

        let name = format!("{}-other", a.name());
        let other = Claim::new(name, Arc::clone(b.holder()), self.ttl);
        let rule = "a lease with a different name is free";
        let (token, _) = self.acquire_in_time(&other, rule).await?;
        self.release(&other, token, Released::Released, rule).await?;
        self.renew(a, first, Renewed::Extended, rule).await?;

        self.release(a, first, Released::Released, "the holder releases its lease").await?;
        let rule = "rule 3: a lease is granted again after a release, with a higher token";
        let second = self.acquire(b, first, rule).await?;
        let rule = "rule 4: an older token than the last one has no effect after a release";
        self.renew(a, first, Renewed::Lost, rule).await?;
        self.release(a, first, Released::NotHeld, rule).await?;
        self.renew(b, second, Renewed::Extended, rule).await?;
        Ok(second)
    }

    /// `b` has the lease, also afterwards.
    async fn check_tokens(&self, old: FencingToken) -> Checked<FencingToken> {
        let Self { a, b, .. } = self;
        let rule = "rule 5: a holder is granted its own lease again, with a higher token";
        let new = self.acquire(b, old, rule).await?;
        let rule = "rule 4: an older token than the last one has no effect";
        self.renew(b, old, Renewed::Lost, rule).await?;
        self.release(b, old, Released::NotHeld, rule).await?;
        self.is_held(a, rule).await?;
        self.renew(b, new, Renewed::Extended, rule).await?;
        Ok(new)
    }

    /// `b` has the lease. Afterwards, it is free.
    async fn check_expiry(&self, last: FencingToken) -> Checked<FencingToken> {
        let Self { a, b, ttl, .. } = self;
        sleep(*ttl / 2).await;
        let rule = "rule 2: a lease expires one ttl after the last request that renewed it";
        let sent = now();
        self.renew(b, last, Renewed::Extended, rule).await?;
        let (next, granted) = self.acquire_in_time(a, rule).await?;
        let passed = granted.saturating_duration_since(sent);
        // The clocks of two machines may differ a little.
        if passed < *ttl - *ttl / 100 {
            return Err(failure(rule, a, "acquire", format_args!("granted after {passed:?}")));
        }
        let rule = "rule 3: a lease is granted again after an expiry, with a higher token";
        is_higher(next, last, a, rule)?;
        let rule = "rule 4: an older token than the last one has no effect after an expiry";
        self.renew(b, last, Renewed::Lost, rule).await?;
        self.release(b, last, Released::NotHeld, rule).await?;
        self.is_held(b, rule).await?;

        sleep(2 * *ttl).await;
        let rule = "a lease that has expired can't be renewed, also if no other holder has it";
        self.renew(a, next, Renewed::Lost, rule).await?;
        self.shows(None, None).await?;
        let rule = "rule 7: a memo isn't stored after the expiry";
        let answer = timeout(self.ttl, self.engine.write_memo(a, next, &Memo::default())).await;
        if let Ok(Ok(MemoWrite::Stored)) = answer {
            return Err(unexpected(&MemoWrite::Stored, rule, a, "write_memo"));
        }
        let last = self.acquire(a, next, rule).await?;
        self.release(a, last, Released::Released, rule).await?;
        Ok(last)
    }

    /// The lease is free, also afterwards.
    async fn check_rivals(&self, last: FencingToken) -> Checked<FencingToken> {
        let rule = "rule 1: of many requests at once, one is granted";
        let mut requests = JoinSet::new();
        for rival in 0..RIVALS {
            let holder = format!("{}-{rival}", self.a.holder());
            let claim = Claim::new(Arc::clone(self.a.name()), holder, self.ttl);
            let engine = self.engine.clone();
            requests.spawn(async move {
                let acquired = known(engine.acquire(&claim), rule, &claim, "acquire").await;
                (claim, acquired)
            });
        }
        let mut granted = Vec::new();
        while let Some(request) = requests.join_next().await {
            let (claim, acquired) = request.map_err(|error| format!("{rule}: {error}"))?;
            if let Acquired::Granted(token) = acquired? {
                granted.push((claim, token));
            }
        }
        let [(claim, token)] = &granted[..] else {
            return Err(format!("{rule}; but {} of {RIVALS} were granted", granted.len()));
        };
        is_higher(*token, last, claim, rule)?;
        self.release(claim, *token, Released::Released, rule).await?;
        Ok(*token)
    }

    /// The lease is free, also afterwards.
    async fn check_memo(&self, last: FencingToken) -> Checked<FencingToken> {
        let Self { a, b, engine, .. } = self;
        let rule = "rule 3: a lease is granted again after a release, with a higher token";
        let first = self.acquire(a, last, rule).await?;
        self.shows(Some((a, first)), None).await?;
        // Different in each run, because a memo of an earlier run is still there.
        let run = fastrand::u64(..).to_be_bytes();
        let memo = |number| Memo::new([&run[..], &[number]].concat()).expect("9 bytes");
        let (kept, other) = (memo(1), memo(2));
        match timeout(self.ttl, engine.write_memo(a, first, &other)).await {
            Ok(Err(error)) if error.is_unsupported() => {
                return self.release(a, first, Released::Released, rule).await.map(|()| first);
            }
            _ => {}
        }
        let rule = "rule 7: the holder of the last grant stores a memo";
        let longest = Memo::new([0xff; Memo::MAX_LENGTH]).expect("as long as allowed");
        for stored in [Memo::default(), longest, other, kept] {
            self.write_memo(a, first, &stored, MemoWrite::Stored, rule).await?;
            self.shows(Some((a, first)), Some(stored)).await?;
        }

        let rule = "rule 7: nobody but the holder of the last grant stores a memo";
        self.write_memo(b, first, &other, MemoWrite::NotHeld, rule).await?;
        let never = FencingToken::new(u64::MAX);
        self.write_memo(a, never, &other, MemoWrite::NotHeld, rule).await?;
        let second = self.acquire(a, first, rule).await?;
        self.write_memo(a, first, &other, MemoWrite::NotHeld, rule).await?;
        self.renew(a, second, Renewed::Extended, rule).await?;
        self.shows(Some((a, second)), Some(kept)).await?;

        let rule = "rule 7: a memo is kept after a release, and stored by no earlier holder";
        self.release(a, second, Released::Released, rule).await?;
        self.write_memo(a, second, &other, MemoWrite::NotHeld, rule).await?;
        self.shows(None, Some(kept)).await?;
        let third = self.acquire(b, second, rule).await?;
        self.write_memo(a, second, &other, MemoWrite::NotHeld, rule).await?;
        self.shows(Some((b, third)), Some(kept)).await?;
        self.write_memo(b, third, &other, MemoWrite::Stored, rule).await?;
        self.release(b, third, Released::Released, rule).await?;
        self.shows(None, Some(other)).await?;
        Ok(third)
    }

    /// The lease is free.
    async fn check_dropped(&self, last: FencingToken) -> Checked {
        let (a, engine) = (&self.a, &self.engine);
        let rule = "a request that is dropped leaves the engine usable";
        poll_once(engine.acquire(a)).await;
        // The dropped request may reach the store late. Then its grant replaces the next one.
        for _ in 0..3 {
            let token = self.acquire(a, last, rule).await?;
            poll_once(engine.renew(a, token)).await;
            let renewed = known(engine.renew(a, token), rule, a, "renew").await?;
            if renewed == Renewed::Extended {
                poll_once(engine.release(a, token)).await;
                // The answer depends on whether the dropped request has reached the store.
                known(engine.release(a, token), rule, a, "release").await?;
                let token = self.acquire(a, token, rule).await?;
                return self.release(a, token, Released::Released, rule).await;
            }
        }
        Err(failure(rule, a, "renew", "answered with Lost three times"))
    }

    /// Requests the lease, which has to be granted with a higher token.
    async fn acquire(
        &self,
        claim: &Claim,
        last: FencingToken,
        rule: &str,
    ) -> Checked<FencingToken> {
        match known(self.engine.acquire(claim), rule, claim, "acquire").await? {
            Acquired::Granted(token) => is_higher(token, last, claim, rule).map(|()| token),
            held @ Acquired::Held { .. } => Err(unexpected(&held, rule, claim, "acquire")),
        }
    }

    /// Requests the lease until it is granted. Returns the token, and when it was granted.
    async fn acquire_in_time(&self, claim: &Claim, rule: &str) -> Checked<(FencingToken, Instant)> {
        let began = now();
        loop {
            let acquired = known(self.engine.acquire(claim), rule, claim, "acquire").await?;
            let now = now();
            if let Acquired::Granted(token) = acquired {
                return Ok((token, now));
            }
            let passed = now.saturating_duration_since(began);
            if passed >= 2 * self.ttl {
                let text = format_args!("not granted within {passed:?}");
                return Err(failure(rule, claim, "acquire", text));
            }
            sleep(self.ttl / REQUESTS).await;
        }
    }

    /// Requests the lease, which the other of the two holders has.
    async fn is_held(&self, claim: &Claim, rule: &str) -> Checked {
        let holder = if *claim == self.a { self.b.holder() } else { self.a.holder() };
        match known(self.engine.acquire(claim), rule, claim, "acquire").await? {
            Acquired::Held { by } if by.as_ref().is_none_or(|by| by == holder) => Ok(()),
            acquired => Err(unexpected(&acquired, rule, claim, "acquire")),
        }
    }

    /// Looks at the lease, which this holder has with this token, or nobody. `memo`: the one that has to be there.
    async fn shows(&self, holder: Option<(&Claim, FencingToken)>, memo: Option<Memo>) -> Checked {
        let (rule, a) = ("rule 6: `holder` names the holder of the last grant", &self.a);
        let record: LeaseRecord = known(self.engine.holder(a.name()), rule, a, "holder").await?;
        let named = |claim: &Claim| record.holder().is_none_or(|it| it == claim.holder());
        let fits = match holder {
            Some((claim, token)) => {
                record.is_held() && named(claim) && record.token().is_none_or(|it| it == token)
            }
            None => !record.is_held() && record.holder().is_none(),
        };
        // Some stores count in seconds, and round up.
        let longest = self.ttl + Duration::from_secs(1);
        if !fits || record.remaining().is_some_and(|remaining| remaining > longest) {
            return Err(unexpected(&record, rule, a, "holder"));
        }
        if memo.is_some_and(|memo| memo != *record.memo()) {
            let rule = "rule 7: the memo that was stored last is returned";
            return Err(unexpected(&record, rule, a, "holder"));
        }
        Ok(())
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
        expected: MemoWrite,
        rule: &str,
    ) -> Checked {
        let answer = self.engine.write_memo(claim, token, memo);
        match known(answer, rule, claim, "write_memo").await? {
            answer if answer == expected => Ok(()),
            answer => Err(unexpected(&answer, rule, claim, "write_memo")),
        }
    }

    async fn renew(
        &self,
        claim: &Claim,
        token: FencingToken,
        expected: Renewed,
        rule: &str,
    ) -> Checked {
        match known(self.engine.renew(claim, token), rule, claim, "renew").await? {
            answer if answer == expected => Ok(()),
            answer => Err(unexpected(&answer, rule, claim, "renew")),
        }
    }

    async fn release(
        &self,
        claim: &Claim,
        token: FencingToken,
        expected: Released,
        rule: &str,
    ) -> Checked {
        match known(self.engine.release(claim, token), rule, claim, "release").await? {
            answer if answer == expected => Ok(()),
            answer => Err(unexpected(&answer, rule, claim, "release")),
        }
    }
}

/// Returns the answer, which has to be known within one ttl.
async fn known<T>(
    answer: impl Future<Output = Result<T, LeaseError>>,
    rule: &str,
    claim: &Claim,
    request: &str,
) -> Checked<T> {
    let text = match timeout(claim.ttl(), answer).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => ExitError::from(error).to_string(),
        Err(_elapsed) => format!("not answered within {:?}", claim.ttl()),
    };
    Err(failure(rule, claim, request, text))
}

fn is_higher(token: FencingToken, last: FencingToken, claim: &Claim, rule: &str) -> Checked {
    if token > last {
        return Ok(());
    }
    let text = format_args!("granted with the token {token} after {last}");
    Err(failure(rule, claim, "acquire", text))
}

fn unexpected(answer: &impl Debug, rule: &str, claim: &Claim, request: &str) -> String {
    failure(rule, claim, request, format_args!("answered with {answer:?}"))
}

fn failure(rule: &str, claim: &Claim, request: &str, what: impl Display) -> String {
    format!("{rule}; but `{request}` of `{}` by `{}`: {what}", claim.name(), claim.holder())
}

/// Polls a request once, and drops it.
async fn poll_once<T>(request: impl Future<Output = T>) {
    let mut request = pin!(request);
    poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx).is_ready())).await;
}

#[cfg(test)]
mod tests;
