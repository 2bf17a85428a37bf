//! Many children that all wait for their next attempt.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use verger::{
    Backoff, CancellationToken, ChildSpec, Context, DynamicSupervisor, Exit, Supervisor,
    SupervisorHandle, worker,
};

use crate::idle::STARTS;
use crate::measure::{Part, Row, Side, Unit, nanos, peak_bytes, runtime, worked};
use crate::table::{Layout, Table};

pub(crate) const TABLE: Table = Table {
    title: "100,000 pending backoffs",
    note: "All children of one dynamic supervisor fail at once and wait for two seconds. To arm one \
           is all the work of a failure, to fire one all that of a start, the child's own included. \
           How late is told by the child: from its failure to its next first instruction, without \
           the two seconds. Timers have a grain of 1 ms.",
    rows: ROWS,
    layout: Layout::Parts,
};

const ROWS: &[Row] = &[Row::new("backoffs", backoffs)
    .what("100,000 pending backoffs")
    .alone(Side::verger(100_000))
    .parts(&[
        Part::without_budget("a child that waits", Unit::Bytes),
        Part::without_budget("processor time to arm one", Unit::Nanos),
        Part::without_budget("processor time to fire one", Unit::Nanos),
        Part::without_budget("all armed after", Unit::Nanos),
        Part::without_budget("late, p50", Unit::Nanos),
        Part::without_budget("late, p99", Unit::Nanos),
        Part::without_budget("late, the last", Unit::Nanos),
    ])
    .rounds(3)];

const DELAY: Duration = Duration::from_secs(2);

/// When each child failed, and how late it was back.
static FAILED: Mutex<Vec<Option<Instant>>> = Mutex::new(Vec::new());
static LATE: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

fn backoffs(side: Side) -> Vec<f64> {
    let n = side.n;
    *FAILED.lock().expect("no panic") = vec![None; n as usize];
    LATE.lock().expect("no panic").reserve(n as usize);
    let runtime = runtime();
    let figures = runtime.block_on(async move {
        let bytes = waiting(n, &supervisor().await).await;
        let conns = supervisor().await;
        let go = CancellationToken::new();
        let all = STARTS.expect(n);
        for number in 0..n {
            conns.start_child(failing(number as usize, go.clone())).await.expect("it starts");
        }
        all.await.expect("they start");
        let all = STARTS.expect(n);
        let (before, began) = (worked(), Instant::now());
        go.cancel();
        all_wait(n, &conns).await;
        let (armed, arming) = (began.elapsed(), worked() - before);
        assert!(armed < DELAY, "the first fire before the last are armed: {armed:?}");
        let before = worked();
        all.await.expect("they come back");
        let firing = worked() - before;
        let late = {
            let mut late = LATE.lock().expect("no panic");
            late.sort();
            std::mem::take(&mut *late)
        };
        let late = [late.len() / 2, late.len() * 99 / 100, late.len() - 1].map(|at| late[at]);
        let each = [arming, firing].map(|worked| nanos(worked, n));
        let took = [armed, late[0], late[1], late[2]].map(|took| nanos(took, 1));
        [&[bytes], &each[..], &took[..]].concat()
    });
    runtime.shutdown_background();
    figures
}

async fn supervisor() -> SupervisorHandle {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
    let app = Supervisor::builder("app").child(conns).build().expect("a tree");
    let tree = app.start().await.expect("it starts");
    tree.supervisor("conns").await.expect("it runs")
}

fn failing(number: usize, go: CancellationToken) -> ChildSpec {
    let child = worker("failing", move |ctx: Context| {
        let go = (ctx.incarnation() == 1).then(|| go.clone());
        async move {
            let now = Instant::now();
            STARTS.one();
            let Some(go) = go else {
                let failed = FAILED.lock().expect("no panic")[number].expect("it failed");
                LATE.lock().expect("no panic").push((now - failed).saturating_sub(DELAY));
                ctx.cancelled().await;
                return Exit::Ok(());
            };
            go.cancelled().await;
            FAILED.lock().expect("no panic")[number] = Some(Instant::now());
            Err("out of luck".into())
        }
    });
    child.backoff(Backoff::constant(DELAY))
}

/// What each of `n` children weighs that fails at once and waits, all in all. What its run took is
/// used by the next one's.
async fn waiting(n: u64, conns: &SupervisorHandle) -> f64 {
    let before = peak_bytes();
    let failing = worker("waiting", async |_ctx| Exit::Err("out of luck".into()));
    let failing = failing.backoff(Backoff::constant(Duration::from_secs(3600)));
    for _ in 0..n {
        conns.start_child(failing.clone()).await.expect("it starts");
    }
    all_wait(n, conns).await;
    (peak_bytes() - before) as f64 / n as f64
}

async fn all_wait(n: u64, conns: &SupervisorHandle) {
    while u64::from(conns.count_children().await.expect("it runs").restarting) < n {
        sleep(Duration::from_millis(5)).await;
    }
}
