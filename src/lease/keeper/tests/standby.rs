//! The end of a keeper, and the preparation of a standby.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_standby_asks_every_poll_and_reports_what_changes() {
    let leases = MemoryLeases::new();
    acquire(&leases, "y").await;
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(1_100)).await;
    let sent: Vec<_> = requests(&leases, kept.began, "x").iter().map(|request| request.0).collect();
    assert_eq!(sent, [0, 500, 1_000]);
    leases.set_unreachable(true);
    kept.at(millis(2_100)).await;
    leases.set_unreachable(false);
    leases.take_away("a");
    kept.at(millis(3_100)).await;
    leases.expire("a");
    kept.at(secs(10)).await;
    let unreachable = LeaseChange::Standby {
        holder: Some("y".into()),
        problem: Some("the store is unreachable".into()),
    };
    assert_eq!(
        kept.reports(),
        [
            (0, behind("y")),
            (1_500, unreachable),
            (3_000, behind("an outsider")),
            (3_500, granted(3)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_standby_that_hangs_is_followed_by_others() {
    let leases = MemoryLeases::new();
    leases.hang(true);
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(7)).await;
    leases.hang(false);
    kept.at(secs(11)).await;
    let sent: Vec<_> = requests(&leases, kept.began, "x").iter().map(|request| request.0).collect();
    assert_eq!(sent, [0, 3_333, 6_666, 9_999]);
    assert_eq!(kept.reports(), [(3_333, problem("no answer within 3.333s")), (9_999, granted(1))]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_answer_was_lost_is_granted_again() {
    let leases = MemoryLeases::new();
    leases.lose_answers(true);
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(100)).await;
    leases.lose_answers(false);
    kept.at(secs(1)).await;
    assert_eq!(kept.reports(), [(0, problem("the answer was lost")), (500, granted(2))]);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_lease_is_not_released() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    assert_eq!(kept.end(LeaseEnd::Abandon).await, Duration::ZERO);
    assert_eq!(leases.holder("a").as_deref(), Some("x"));

    // So is one whose sender is dropped.
    let mut kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    kept.end = None;
    kept.ended().await;
    assert_eq!(leases.token("a"), Some(FencingToken::new(2)));
}

#[tokio::test(start_paused = true)]
async fn a_release_takes_at_most_two_seconds() {
    for (fault, attempts) in [
        (MemoryLeases::hang as fn(&MemoryLeases, bool), [0, 666, 1_333]),
        (MemoryLeases::set_unreachable, [0, 667, 1_334]),
    ] {
        let leases = MemoryLeases::new();
        let kept = Kept::new(lease(leases.clone()), "x");
        kept.at(secs(1)).await;
        fault(&leases, true);
        let ended = Instant::now();
        let took = kept.end(LeaseEnd::Release).await;
        assert!(took <= secs(2), "{took:?}");
        let sent: Vec<_> = requests(&leases, ended, "x").iter().skip(1).map(|it| it.0).collect();
        assert_eq!(sent.len(), attempts.len());
        assert!(sent.iter().zip(attempts).all(|(sent, at)| sent.abs_diff(at) <= 1), "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_succeeds_at_a_later_attempt() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    leases.set_unreachable(true);
    let heal = async {
        sleep(millis(100)).await;
        leases.set_unreachable(false);
    };
    let (took, ()) = tokio::join!(kept.end(LeaseEnd::Release), heal);
    assert_eq!(took, millis(667));
    assert_eq!(leases.holder("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_ends_gives_back_what_is_granted_meanwhile() {
    for how in [LeaseEnd::Release, LeaseEnd::Abandon] {
        let leases = MemoryLeases::new();
        leases.delay(millis(600));
        let kept = Kept::new(lease(leases.clone()), "x");
        kept.at(millis(100)).await;
        let reports = Arc::clone(&kept.reports);
        // 500 ms until the answer, and then the release.
        leases.delay(millis(400));
        assert_eq!(kept.end(how).await, millis(900));
        assert_eq!(leases.holder("a"), None);
        assert_eq!(*reports.lock(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_arrives_with_the_end_is_not_reported() {
    let leases = MemoryLeases::new();
    leases.delay(millis(500));
    let kept = Kept::new(lease(leases.clone()), "x");
    let reports = Arc::clone(&kept.reports);
    kept.at(millis(500)).await;
    leases.delay(Duration::ZERO);
    assert_eq!(kept.end(LeaseEnd::Release).await, Duration::ZERO);
    assert_eq!(*reports.lock(), []);
    assert_eq!(leases.history("a").len(), 2, "granted and released");
}

#[tokio::test(start_paused = true)]
async fn a_standby_whose_request_hangs_ends_within_two_seconds() {
    let leases = MemoryLeases::new();
    leases.hang(true);
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(secs(1)).await;
    assert_eq!(kept.end(LeaseEnd::Release).await, secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_standby_without_a_request_ends_at_once() {
    let leases = MemoryLeases::new();
    acquire(&leases, "y").await;
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(100)).await;
    assert_eq!(kept.end(LeaseEnd::Release).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_in_flight_delays_no_release() {
    let leases = MemoryLeases::new();
    let kept = Kept::new(lease(leases.clone()), "x");
    kept.at(millis(1_900)).await;
    leases.delay(secs(3));
    kept.at(millis(2_100)).await;
    leases.delay(Duration::ZERO);
    assert_eq!(kept.end(LeaseEnd::Release).await, Duration::ZERO);
    assert_eq!(leases.holder("a"), None);
}

/// Counts the preparations that have begun, and those that run.
#[derive(Clone, Default)]
struct Preparations {
    begun: Arc<AtomicU32>,
    running: Arc<AtomicU32>,
}

impl Preparations {
    fn counts(&self) -> (u32, u32) {
        (self.begun.load(Ordering::Relaxed), self.running.load(Ordering::Relaxed))
    }

    /// A lease whose preparation takes so long.
    fn lease(&self, leases: &MemoryLeases, takes: Duration) -> Lease {
        struct Running(Arc<AtomicU32>);

        impl Drop for Running {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }

        let this = self.clone();
        lease(leases.clone()).warm_standby(move || {
            let Self { begun, running } = this.clone();
            async move {
                begun.fetch_add(1, Ordering::Relaxed);
                running.fetch_add(1, Ordering::Relaxed);
                let _running = Running(running);
                sleep(takes).await;
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_prepares_once_beside_its_requests() {
    let (leases, preparations) = (MemoryLeases::new(), Preparations::default());
    acquire(&leases, "y").await;
    let kept = Kept::new(preparations.lease(&leases, secs(3)), "x");
    kept.at(millis(2_900)).await;
    assert_eq!(preparations.counts(), (1, 1));
    assert_eq!(requests(&leases, kept.began, "x").len(), 6, "it still asks");
    kept.at(secs(10)).await;
    assert_eq!(preparations.counts(), (1, 0));
    leases.set_unreachable(true);
    kept.at(secs(12)).await;
    leases.set_unreachable(false);
    kept.at(secs(14)).await;
    assert_eq!(preparations.counts(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_prepared_unless_a_different_holder_has_the_lease() {
    let (leases, preparations) = (MemoryLeases::new(), Preparations::default());
    leases.set_unreachable(true);
    let kept = Kept::new(preparations.lease(&leases, secs(3)), "x");
    kept.at(secs(5)).await;
    leases.set_unreachable(false);
    kept.at(secs(8)).await;
    assert_eq!(kept.reports()[1..], [(7_500, granted(1))]);
    assert_eq!(preparations.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_preparation_is_dropped_before_a_grant_is_reported_and_at_the_end() {
    let (leases, preparations) = (MemoryLeases::new(), Preparations::default());
    acquire(&leases, "y").await;
    let (end, ended) = oneshot::channel();
    let at_grant = Arc::new(Mutex::new(None));
    let (seen, counted) = (Arc::clone(&at_grant), preparations.clone());
    let report = move |change| {
        if matches!(change, LeaseChange::Granted(_)) {
            *seen.lock() = Some(counted.counts());
        }
    };
    let keeper = keep(preparations.lease(&leases, secs(3_600)), child(), "x".into(), ended, report);
    let keeper = tokio::spawn(keeper);
    sleep(secs(1)).await;
    assert_eq!(preparations.counts(), (1, 1));
    leases.expire("a");
    sleep(secs(1)).await;
    assert_eq!(*at_grant.lock(), Some((1, 0)));
    end.send(LeaseEnd::Abandon).unwrap();
    keeper.await.unwrap();

    let kept = Kept::new(preparations.lease(&leases, secs(3_600)), "z");
    kept.at(secs(1)).await;
    assert_eq!(preparations.counts(), (2, 1));
    kept.end(LeaseEnd::Release).await;
    assert_eq!(preparations.counts(), (2, 0));
}
