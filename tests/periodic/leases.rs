//! Jobs of which one process among several runs each planned run.

use std::time::Duration;

use verger::lease::{
    Acquired, Claim, FencingToken, Lease, LeaseEngine, LeaseError, LeaseRecord, Released, Renewed,
};
use verger::periodic::{Missed, RunContext};
use verger::testing::MemoryLeases;
use verger::{Supervisor, SupervisorHandle, async_trait, cron};

use crate::common::start;
use crate::cron::WallClock;
use crate::diary::{Diary, millis, secs, sleep};

fn lease(leases: &MemoryLeases) -> Lease {
    Lease::new("backup", leases.clone()).jitter(0.0)
}

/// A process with the job, under a name.
async fn process(
    name: &'static str,
    (diary, clock, leases): (&Diary, &WallClock, &MemoryLeases),
) -> SupervisorHandle {
    let (noted, read) = (diary.clone(), clock.clone());
    let job = cron("backup", "30 4 * * *", move |run: RunContext| {
        let late = run.late().as_millis();
        noted.note(&format!("{name} {late}"));
        async {}
    });
    let job = job.clock(move || read.now()).missed(Missed::OnceWithin(secs(6 * 3600)));
    start(Supervisor::builder(name).child(job.spec().lease(lease(leases)))).await
}

/// Lets the other process take over.
async fn hand_over(from: &SupervisorHandle, to: &SupervisorHandle) {
    from.stop_child("backup").await.unwrap();
    sleep(millis(600)).await;
    assert!(to.which_child("backup").await.unwrap().lifecycle.to_string() == "active");
    from.otp().restart_child("backup").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_repeated_by_the_process_that_gets_its_lease_back() {
    let (diary, leases) = (Diary::new(), MemoryLeases::new());
    let clock = WallClock::at("2026-01-01T04:29:00Z");
    let shared = (&diary, &clock, &leases);
    let a = process("a", shared).await;
    let b = process("b", shared).await;
    sleep(secs(10)).await;
    hand_over(&a, &b).await;
    sleep(secs(60)).await;
    hand_over(&b, &a).await;
    sleep(secs(3600)).await;
    assert_eq!(diary.lines(), ["60 b 0"]);
    for tree in [a, b] {
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_due_during_a_hand_over_is_made_up_for_once() {
    let (diary, leases) = (Diary::new(), MemoryLeases::new());
    let clock = WallClock::at("2026-01-01T04:29:00Z");
    let shared = (&diary, &clock, &leases);
    let a = process("a", shared).await;
    // Nobody has the lease at 04:30, not even a standby.
    sleep(secs(59)).await;
    a.stop_child("backup").await.unwrap();
    sleep(secs(11)).await;
    let b = process("b", shared).await;
    sleep(secs(60)).await;
    b.stop("done").await.unwrap();
    a.otp().restart_child("backup").await.unwrap();
    sleep(secs(60)).await;
    let lines = diary.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("b 10"), "about ten seconds late: {lines:?}");
    a.stop("done").await.unwrap();
}

/// An engine whose store keeps nothing with a lease.
#[derive(Debug)]
struct Plain(MemoryLeases);

#[async_trait]
impl LeaseEngine for Plain {
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

#[test]
fn an_engine_that_keeps_no_memo_can_not_make_up_for_missed_runs() {
    let job = |missed| {
        let job = cron("backup", "30 4 * * *", async |_: RunContext| {}).missed(missed);
        let lease = Lease::new("backup", Plain(MemoryLeases::new()));
        Supervisor::builder("app").child(job.spec().lease(lease)).build()
    };
    let error = job(Missed::OnceWithin(Duration::from_secs(60))).unwrap_err().to_string();
    assert!(error.starts_with("`app/backup`: `Missed::OnceWithin` needs "), "{error}");
    assert!(
        error.contains("the engine `Plain(MemoryLeases { .. })` of the lease `backup`"),
        "{error}"
    );
    assert!(job(Missed::Skip).is_ok());
}
