//! Keepers with a store in memory, under paused time. Instants are asserted as equalities.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::lease::clock::SuspendedTime;
use crate::lease::guard::LossReason;
use crate::lease::{Acquired, FencingToken};
use crate::sync::Mutex;
use crate::testing::{LeaseRequest, MemoryLeases};

mod faults;
mod late;
mod partition;
mod standby;

const TTL: Duration = Duration::from_secs(15);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The lease of all tests, without jitter.
fn lease(engine: impl LeaseEngine) -> Lease {
    Lease::new("a", engine).jitter(0.0)
}

/// The child of all tests.
fn child() -> Path {
    Path::root("app").join("a")
}

/// A keeper in a task of its own, and what it has reported.
struct Kept {
    began: Instant,
    end: Option<oneshot::Sender<LeaseEnd>>,
    reports: Arc<Mutex<Vec<(u64, LeaseChange)>>>,
    task: JoinHandle<()>,
}

impl Kept {
    fn new(lease: Lease, holder: &str) -> Self {
        let (end, ended) = oneshot::channel();
        let (began, reports) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&reports);
        let report = move |change| {
            let at = began.elapsed().as_millis().try_into().unwrap();
            kept.lock().push((at, change));
        };
        let task = tokio::spawn(keep(lease, child(), holder.into(), ended, report));
        Self { began, end: Some(end), reports, task }
    }

    /// Waits until so long after the beginning.
    async fn at(&self, after: Duration) {
        sleep_until(self.began + after).await;
    }

    /// Returns the reports since the last call, with the milliseconds since the beginning.
    fn reports(&self) -> Vec<(u64, LeaseChange)> {
        std::mem::take(&mut self.reports.lock())
    }

    /// Ends the keeper, and returns how long that takes.
    async fn end(mut self, how: LeaseEnd) -> Duration {
        let began = Instant::now();
        self.end.take().unwrap().send(how).unwrap();
        self.task.await.unwrap();
        began.elapsed()
    }

    /// Waits until the keeper ends by itself, and returns the last reports.
    async fn ended(self) -> Vec<(u64, LeaseChange)> {
        self.task.await.unwrap();
        self.reports.lock().clone()
    }
}

fn granted(token: u64) -> LeaseChange {
    LeaseChange::Granted(FencingToken::new(token))
}

fn behind(holder: &str) -> LeaseChange {
    LeaseChange::Standby { holder: Some(holder.into()), problem: None }
}

fn problem(problem: &str) -> LeaseChange {
    LeaseChange::Standby { holder: None, problem: Some(problem.into()) }
}

fn not_renewed(problem: &str) -> LeaseChange {
    LeaseChange::Lost(LossReason::NotRenewed { within: secs(10), problem: Some(problem.into()) })
}

fn claim(holder: &str) -> Claim {
    Claim::new("a", holder, TTL)
}

async fn acquire(leases: &MemoryLeases, holder: &str) -> FencingToken {
    match leases.acquire(&claim(holder)).await {
        Ok(Acquired::Granted(token)) => token,
        other => panic!("{other:?}"),
    }
}

/// Returns when a holder has sent its requests, in milliseconds.
fn requests(leases: &MemoryLeases, began: Instant, holder: &str) -> Vec<(u64, String)> {
    let requests = leases.history("a").into_iter().filter(|event| &*event.holder == holder);
    requests
        .map(|event| {
            let at = (event.at - began).as_millis().try_into().unwrap();
            (at, format!("{} -> {}", event.request, event.effect))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_free_lease_is_granted_at_once_and_renewed_every_retry() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(5)).await;
    assert_eq!(kept.reports(), [(0, granted(1))]);
    assert_eq!(
        requests(&leases, kept.began, "x"),
        [
            (0, "acquire -> granted 1".to_owned()),
            (2_000, "renew 1 -> extended".to_owned()),
            (4_000, "renew 1 -> extended".to_owned()),
        ]
    );
    // It stays granted for as long as it is renewed.
    kept.at(secs(3_600)).await;
    assert_eq!(kept.reports(), []);
    assert_eq!(leases.holder("a").as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn by_default_the_requests_are_up_to_a_fifth_further_apart() {
    let leases = MemoryLeases::new();
    acquire(&leases, "other").await;
    let kept = Kept::new(Lease::new("a", leases.clone()), "x");
    kept.at(secs(60)).await;
    let history = leases.history("a");
    let of = |acquires: bool| {
        let own = history.iter().filter(|event| &*event.holder == "x");
        let own = own.filter(|event| (event.request == LeaseRequest::Acquire) == acquires);
        own.map(|event| event.at).collect::<Vec<_>>()
    };
    for (sent, least, most) in [(of(true), 500, 601), (of(false), 2_000, 2_401)] {
        let waits: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            waits.iter().all(|wait| (millis(least)..=millis(most)).contains(wait)),
            "{waits:?}"
        );
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_taken_over_within_its_ttl_and_a_poll() {
    let leases = MemoryLeases::new();
    let killed = Kept::new(lease(leases.clone()), "killed");
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(4_100)).await;
    // As after a `kill -9`: it was renewed last at 4 s.
    killed.task.abort();
    kept.at(secs(60)).await;
    assert_eq!(kept.reports(), [(0, behind("killed")), (19_000, granted(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_is_taken_over_at_the_next_poll() {
    let leases = MemoryLeases::new();
    let stopped = Kept::new(lease(leases.clone()), "stopped");
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(4_100)).await;
    assert_eq!(stopped.end(LeaseEnd::Release).await, Duration::ZERO);
    assert_eq!(leases.holder("a"), None);
    kept.at(secs(60)).await;
    assert_eq!(kept.reports(), [(0, behind("stopped")), (4_500, granted(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_lost_at_the_deadline_before_it_expires() {
    let leases = MemoryLeases::new();
    let own = leases.client();
    let kept = Kept::new(lease(own.clone()), "x");
    let rival = Kept::new(lease(leases.clone()), "rival");
    kept.at(secs(5)).await;
    own.set_unreachable(true);
    let began = kept.began;
    // Renewed last at 4 s.
    assert_eq!(
        kept.ended().await,
        [(0, granted(1)), (14_000, not_renewed("the store is unreachable"))]
    );
    assert_eq!(began.elapsed(), secs(14));
    rival.at(secs(30)).await;
    assert_eq!(rival.reports(), [(0, behind("x")), (19_000, granted(2))]);
    let sent = requests(&leases, began, "x").last().unwrap().clone();
    assert_eq!(sent, (12_000, "renew 1 -> unreachable".to_owned()), "nothing is released");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_never_answers_delays_no_loss() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(5)).await;
    leases.hang(true);
    let began = kept.began;
    let lost = not_renewed("no answer within 3.333s");
    assert_eq!(kept.ended().await, [(0, granted(1)), (14_000, lost)]);
    let sent: Vec<_> = requests(&leases, began, "x").iter().map(|request| request.0).collect();
    assert_eq!(sent, [0, 2_000, 4_000, 6_000, 9_333, 12_666]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_answer_counts_as_not_renewed_although_the_store_has_renewed() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(5)).await;
    leases.lose_answers(true);
    let lost = not_renewed("the answer was lost");
    assert_eq!(kept.ended().await, [(0, granted(1)), (14_000, lost)]);
    assert_eq!(leases.holder("a").as_deref(), Some("x"), "until 27 s");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_in_time_keeps_a_lease_after_failures() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(5)).await;
    leases.set_unreachable(true);
    kept.at(secs(11)).await;
    leases.set_unreachable(false);
    kept.at(secs(60)).await;
    assert_eq!(kept.reports(), [(0, granted(1))]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_before_the_request_was_sent() {
    let leases = MemoryLeases::new();
    leases.delay(secs(3));
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(3_500)).await;
    // Granted and answered at 3 s, renewed at once, and not again.
    assert_eq!(kept.reports(), [(3_000, granted(1))]);
    leases.set_unreachable(true);
    kept.at(secs(12)).await;
    assert_eq!(kept.reports(), []);
    let reports = kept.ended().await;
    assert_eq!(reports, [(13_000, not_renewed("the store is unreachable"))], "10 s after 3 s");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_holder_has_is_lost_at_the_next_renewal() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(5)).await;
    leases.take_away("a");
    let lost = LeaseChange::Lost(LossReason::Refused);
    assert_eq!(kept.ended().await, [(0, granted(1)), (6_000, lost)]);
}

#[tokio::test(start_paused = true)]
async fn a_suspend_loses_the_lease_at_the_next_look() {
    let suspended = Arc::new(Mutex::new(Duration::ZERO));
    let leases = MemoryLeases::new();
    let mut lease = lease(leases.clone());
    lease.suspended = SuspendedTime::Given(Arc::clone(&suspended));
    let kept = Kept::new(lease.clone(), "x");
    kept.at(millis(4_100)).await;
    *suspended.lock() += secs(20);
    let lost = LeaseChange::Lost(LossReason::Suspended { suspended: secs(20) });
    assert_eq!(kept.ended().await, [(0, granted(1)), (4_500, lost)], "within half a second");

    // A short one is survived: the next renewal is due, and succeeds.
    let kept = Kept::new(lease, "x");
    kept.at(millis(4_100)).await;
    *suspended.lock() += secs(5);
    kept.at(secs(60)).await;
    assert_eq!(kept.reports(), [(0, granted(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_too_late_is_given_back_and_requested_again() {
    let suspended = Arc::new(Mutex::new(Duration::ZERO));
    let leases = MemoryLeases::new();
    leases.delay(secs(1));
    let mut lease = lease(leases.clone());
    lease.suspended = SuspendedTime::Given(Arc::clone(&suspended));
    let kept = Kept::new(lease, "x");
    kept.at(millis(500)).await;
    *suspended.lock() += secs(9);
    kept.at(millis(500)).await;
    leases.delay(Duration::ZERO);
    kept.at(millis(1_600)).await;
    assert_eq!(
        requests(&leases, kept.began, "x"),
        [
            (0, "acquire -> granted 1".to_owned()),
            (1_000, "release 1 -> released".to_owned()),
            (1_500, "acquire -> granted 2".to_owned()),
        ]
    );
    assert_eq!(kept.reports(), [(1_500, granted(2))]);
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_with_each_hand_over_and_a_resource_refuses_older_ones() {
    let leases = MemoryLeases::new();
    let mut last = 0;
    for holder in ["x", "y", "x", "y"] {
        let kept = Kept::new(lease(leases.clone()), holder);
        kept.at(secs(1)).await;
        last += 1;
        assert_eq!(kept.reports(), [(0, granted(last))]);
        assert!(leases.accepts("a", FencingToken::new(last)));
        assert!(!leases.accepts("a", FencingToken::new(last - 1)));
        kept.end(LeaseEnd::Release).await;
    }
}
