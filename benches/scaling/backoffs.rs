//! Many children that wait for their next attempt.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use verger::{Backoff, CancellationToken, ChildSpec, Context, Exit, SupervisorHandle, worker};

use crate::Scenario;
use crate::measure::Unit::{Bytes, Nanos};
use crate::measure::{STARTS, dynamic, in_runtime, nanos, peak_bytes, percentile};

pub(crate) const BACKOFFS: Scenario = Scenario {
    name: "backoffs",
    title: "Children that fail at once and wait for two seconds. The delay of a restart is measured \
            from the end of its backoff; timers have a grain of 1 ms:",
    columns: &[("10,000", 10_000), ("100,000", 100_000)],
    lines: &[
        ("memory of a waiting child", Bytes),
        ("all wait after", Nanos),
        ("delay of a restart, p50", Nanos),
        ("delay of a restart, p99", Nanos),
    ],
    work: backoffs,
};

const BACKOFF: Duration = Duration::from_secs(2);

/// When each child failed, and how long after its backoff it started.
static FAILED: Mutex<Vec<Option<Instant>>> = Mutex::new(Vec::new());
static DELAYS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

fn backoffs(n: u64) -> Vec<f64> {
    *FAILED.lock().expect("no panic") = vec![None; n as usize];
    DELAYS.lock().expect("no panic").reserve(n as usize);
    in_runtime(async move {
        let bytes = memory(n).await;
        let [_tree, conns] = dynamic().await;
        let go = CancellationToken::new();
        let all = STARTS.expect(n);
        for number in 0..n {
            conns.start_child(failing(number as usize, go.clone())).await.expect("it starts");
        }
        all.await.expect("they start");
        let all = STARTS.expect(n);
        let began = Instant::now();
        go.cancel();
        until_all_wait(n, &conns).await;
        let waiting = nanos(began.elapsed(), 1);
        all.await.expect("they restart");
        let delays = DELAYS.lock().expect("no panic").clone();
        vec![bytes, waiting, percentile(50, delays.clone()), percentile(99, delays)]
    })
}

fn failing(number: usize, go: CancellationToken) -> ChildSpec {
    let child = worker("failing", move |ctx: Context| {
        let go = (ctx.incarnation() == 1).then(|| go.clone());
        async move {
            let now = Instant::now();
            if let Some(go) = go {
                STARTS.count();
                go.cancelled().await;
                FAILED.lock().expect("no panic")[number] = Some(Instant::now());
                return Exit::Err("out of luck".into());
            }
            let failed = FAILED.lock().expect("no panic")[number].expect("it failed");
            DELAYS.lock().expect("no panic").push((now - failed).saturating_sub(BACKOFF));
            STARTS.count();
            ctx.cancelled().await;
            Ok(())
        }
    });
    child.backoff(Backoff::constant(BACKOFF))
}

/// Bytes for each of `n` children that fail at their first start and wait.
async fn memory(n: u64) -> f64 {
    let [_tree, conns] = dynamic().await;
    let before = peak_bytes();
    let waiting = worker("waiting", async |_ctx| Exit::Err("out of luck".into()));
    let waiting = waiting.backoff(Backoff::constant(Duration::from_secs(3600)));
    for _ in 0..n {
        conns.start_child(waiting.clone()).await.expect("it starts");
    }
    until_all_wait(n, &conns).await;
    (peak_bytes() - before) as f64 / n as f64
}

async fn until_all_wait(n: u64, conns: &SupervisorHandle) {
    while u64::from(conns.otp().count_children().await.expect("it runs").restarting) < n {
        sleep(Duration::from_millis(5)).await;
    }
}
