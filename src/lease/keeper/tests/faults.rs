//! Code of the user's that fails, and the lines that are logged.

use std::io::{self, Write};

use async_trait::async_trait;
use tracing::subscriber::{DefaultGuard, set_default};

use super::*;
use crate::lease::{LeaseError, LeaseRecord, Released, Renewed};

/// Panics in the calls that the test has chosen.
#[derive(Clone, Debug, Default)]
struct Panicking {
    inner: MemoryLeases,
    acquires: Arc<Mutex<bool>>,
    renews: Arc<Mutex<bool>>,
    /// Hangs, and panics when it is dropped.
    drops: Arc<Mutex<bool>>,
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("while dropped");
    }
}

#[async_trait]
impl LeaseEngine for Panicking {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        assert!(!*self.acquires.lock(), "in acquire");
        self.inner.acquire(claim).await
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        if *self.drops.lock() {
            let _bomb = Bomb;
            return std::future::pending().await;
        }
        assert!(!*self.renews.lock(), "in renew");
        self.inner.renew(claim, token).await
    }

    async fn release(&self, _: &Claim, _: FencingToken) -> Result<Released, LeaseError> {
        panic!("in release");
    }

    async fn holder(&self, _: &str) -> Result<LeaseRecord, LeaseError> {
        panic!("no keeper looks");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_panics_has_given_an_unknown_answer() {
    let engine = Panicking::default();
    *engine.acquires.lock() = true;
    let kept = Kept::new(lease(engine.clone()), "x");
    kept.at(millis(600)).await;
    *engine.acquires.lock() = false;
    kept.at(secs(2)).await;
    let reports = kept.reports();
    assert_eq!(reports, [(0, problem("the engine panicked: in acquire")), (1_500, granted(1))]);

    *engine.renews.lock() = true;
    let lost = not_renewed("the engine panicked: in renew");
    assert_eq!(kept.ended().await, [(11_500, lost)]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_panics_in_a_release_or_a_drop_ends_nothing() {
    let engine = Panicking::default();
    let kept = Kept::new(lease(engine.clone()), "x");
    kept.at(secs(1)).await;
    assert!(kept.end(LeaseEnd::Release).await <= secs(2));

    *engine.drops.lock() = true;
    let kept = Kept::new(lease(engine), "x");
    let lost = not_renewed("no answer within 3.333s");
    assert_eq!(kept.ended().await, [(0, granted(2)), (10_000, lost)]);
}

/// Keeps the lines of this thread, without their times.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn new() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let to = lines.clone();
        let subscriber = tracing_subscriber::fmt().without_time().with_ansi(false);
        let subscriber = subscriber.with_writer(move || to.clone()).finish();
        (lines, set_default(subscriber))
    }

    fn take(&self) -> String {
        let lines = std::mem::take(&mut *self.0.lock());
        String::from_utf8(lines).unwrap().replace("verger::lease: ", "").trim().to_owned()
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_renewal_that_fails_is_logged_and_so_is_the_first_that_succeeds_again() {
    let (lines, _set) = Lines::new();
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    assert_eq!(lines.take(), "");
    leases.set_unreachable(true);
    kept.at(secs(7)).await;
    assert_eq!(
        lines.take(),
        r#"WARN can't renew the lease child=app/a lease="a" error="the store is unreachable" lost_in=8s"#
    );
    leases.set_unreachable(false);
    kept.at(secs(20)).await;
    assert_eq!(lines.take(), r#"INFO the lease is renewed again child=app/a lease="a""#);
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_can_t_ask_says_so_after_10_s_and_then_every_five_minutes() {
    let (lines, _set) = Lines::new();
    let leases = MemoryLeases::new();
    leases.set_unreachable(true);
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(9_999)).await;
    assert_eq!(lines.take(), "");
    let line = |waited| {
        format!(
            r#"WARN still can't ask for the lease child=app/a lease="a" error="the store is unreachable" waited={waited}"#
        )
    };
    kept.at(secs(11)).await;
    assert_eq!(lines.take(), line("10s"));
    kept.at(secs(309)).await;
    assert_eq!(lines.take(), "");
    kept.at(secs(311)).await;
    assert_eq!(lines.take(), line("310s"));
    // After 0.5 s, then twice as long after each failure, and from 8 s on every 10 s.
    let asked = requests(&leases, kept.began, "x");
    let asked: Vec<_> = asked.into_iter().map(|(at, _)| at).collect();
    assert_eq!(asked[..7], [0, 500, 1_500, 3_500, 7_500, 15_500, 25_500]);
    leases.set_unreachable(false);
    kept.at(secs(321)).await;
    assert_eq!(lines.take(), "");
    kept.end(LeaseEnd::Release).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_logged() {
    let (lines, _set) = Lines::new();
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    leases.set_unreachable(true);
    kept.end(LeaseEnd::Release).await;
    assert_eq!(
        lines.take(),
        r#"WARN can't release the lease child=app/a lease="a" error="the store is unreachable" expires_within=15s"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_fails_or_panics_is_logged_and_the_standby_goes_on() {
    let (lines, _set) = Lines::new();
    let leases = MemoryLeases::new();
    acquire(&leases, "y").await;
    let failing = lease(leases.clone()).warm_standby(async || Err::<(), _>("no cache"));
    let panicking = lease(leases.clone()).warm_standby(|| -> std::future::Ready<()> {
        panic!("no cache at all");
    });
    for (lease, holder, error) in
        [(failing, "f", "no cache"), (panicking, "p", "panicked: no cache at all")]
    {
        let kept = Kept::new(lease, holder);
        kept.at(millis(2_100)).await;
        assert_eq!(
            lines.take(),
            format!(
                r#"WARN the preparation of the standby has failed child=app/a lease="a" error="{error}""#
            )
        );
        assert_eq!(requests(&leases, kept.began, holder).len(), 5);
        kept.end(LeaseEnd::Release).await;
    }
}
