//! Random calls and failures on a runtime with two worker threads.
//!
//! A [`Script`] is read from the input: a tree whose children end in given ways, and calls that several
//! tasks and the children themselves make. Children fail a limited number of times, so that the tree is
//! at rest in the end. Nothing sleeps: backoffs and graces are zero, a millisecond, or longer than any
//! run.
//!
//! # Invariants
//!
//! 1. The incarnations of one child don't overlap, and their numbers grow while its supervisor runs and
//!    the child is not removed.
//! 2. Every call is answered, and the answer is about the path that was given.
//! 3. No supervisor and no child restarts more often than its limit allows.
//! 4. In every snapshot, the counters of a supervisor agree with its children.
//! 5. A child that is down has no live incarnation.
//! 6. The tree stops. After that no call succeeds, no task is left, and every value is dropped.

#[path = "random_calls/checks.rs"]
mod checks;
#[path = "random_calls/children.rs"]
mod children;
#[path = "random_calls/script.rs"]
mod script;
#[path = "random_calls/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use arbitrary::{Arbitrary, Unstructured};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;
use verger::status::{Event, Node, Subscription};
use verger::{ControlError, Lifecycle, SupervisorHandle};

use self::checks::{check_limits, check_status};
use self::children::{make, tree};
use self::script::Script;
use self::world::{World, yields};

/// Longer than any call takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// A period that is longer than any run, so that no restart expires.
const PERIOD: Duration = Duration::from_secs(3_600);

const MOST_CHILDREN: usize = 4;
const MOST_CALLERS: usize = 3;
const MOST_CALLS: usize = 12;
const MOST_STARTS: usize = 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_time().build().unwrap()
});

/// See the [module](self).
pub(crate) fn run(data: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(data)) else { return };
    RUNTIME.block_on(play(Arc::new(script)));
}

async fn play(mut script: Arc<Script>) {
    let it = Arc::get_mut(&mut script).expect("the only reference");
    it.children.truncate(MOST_CHILDREN);
    it.nested.truncate(MOST_CHILDREN);
    it.callers.truncate(MOST_CALLERS);
    it.callers.iter_mut().for_each(|calls| calls.truncate(MOST_CALLS));

    let world = Arc::new(World {
        script: Arc::clone(&script),
        live: Mutex::default(),
        violations: Mutex::default(),
        tree: Mutex::default(),
        starts: AtomicUsize::new(MOST_STARTS),
    });
    let Ok(supervisor) = tree(&script, &world).build() else { return };
    match timeout(PATIENCE, supervisor.start()).await {
        Ok(Ok(tree)) => calls(tree, &world).await,
        Ok(Err(_)) => {}
        Err(_) => world.violation("the start did not end".into()),
    }
    world.tree.lock().unwrap().take();

    // What is dropped on a worker thread may be dropped after the end was reported.
    let at_rest = || {
        Arc::strong_count(&world) == 1
            && world.live.lock().unwrap().is_empty()
            && RUNTIME.metrics().num_alive_tasks() == 0
    };
    let rest = async {
        while !at_rest() {
            yield_now().await;
        }
    };
    if timeout(PATIENCE, rest).await.is_err() {
        let (count, tasks) = (Arc::strong_count(&world), RUNTIME.metrics().num_alive_tasks());
        let live = world.live.lock().unwrap().clone();
        world.violation(format!("{count} references, {tasks} tasks and {live:?} are left"));
    }
    world.check();
}

/// Makes the calls of the script, and stops the tree.
async fn calls(tree: SupervisorHandle, world: &Arc<World>) {
    let script = &world.script;
    *world.tree.lock().unwrap() = Some(tree.clone());
    let mut events = tree.events();
    let mut callers = JoinSet::new();
    for index in 0..script.callers.len() {
        let (tree, world) = (tree.clone(), Arc::clone(world));
        callers.spawn(async move {
            for plan in &world.script.callers[index] {
                yields(plan.yields).await;
                let call = make(plan.call, &tree, &world);
                match plan.polls {
                    Some(polls) => poll_some(polls % 4, call).await,
                    None => call.await,
                }
            }
        });
    }
    let mut seen = Vec::new();
    if !script.stops_early {
        while let Some(joined) = callers.join_next().await {
            joined.expect("a caller doesn't panic");
        }
        rest(&tree, world).await;
    }
    take(&mut events, &mut seen);
    if script.stops_twice {
        let tree = tree.clone();
        callers.spawn(async move { drop(timeout(PATIENCE, tree.stop("once more")).await) });
    }
    if timeout(PATIENCE, tree.stop("done")).await.is_err() {
        world.violation("the stop did not end".into());
    }
    while let Some(joined) = callers.join_next().await {
        joined.expect("a caller doesn't panic");
    }
    take(&mut events, &mut seen);
    if events.missed() == 0 && !script.retries() {
        check_limits(seen, world);
    }
    match tree.children().await {
        Err(ControlError::Ended { .. }) => {}
        answer => world.violation(format!("after the end: {answer:?}")),
    }
}

fn take(events: &mut Subscription<Event>, seen: &mut Vec<Event>) {
    while let Some(event) = events.try_next() {
        seen.push(event);
    }
}

/// Waits until the tree no longer changes, and checks that children that are down are not alive.
async fn rest(tree: &SupervisorHandle, world: &Arc<World>) {
    /// The time tells apart equal states of two runs of a supervisor.
    type Facts = BTreeMap<String, (Lifecycle, u32, SystemTime)>;

    fn facts(node: &Node, into: &mut Facts) {
        let child = &node.child;
        into.insert(child.path.to_string(), (child.lifecycle, child.incarnation, child.since));
        node.children.iter().for_each(|node| facts(node, into));
    }

    let waits = |it: &Lifecycle| {
        matches!(it, Lifecycle::Activating | Lifecycle::Deactivating | Lifecycle::Restarting)
    };
    let mut before = Facts::new();
    let rest = async {
        loop {
            let Ok(status) = tree.status().await else { return };
            check_status(&status, world);
            let (mut now, mut down) = (Facts::new(), Vec::new());
            facts(&status.root, &mut now);
            for (path, fact) in &before {
                if now.get(path) == Some(fact) && fact.0 == Lifecycle::Stopped && world.live(path) {
                    down.push(path.clone());
                }
            }
            // Alive, and down both before and after that.
            let Ok(status) = tree.status().await else { return };
            let mut after = Facts::new();
            facts(&status.root, &mut after);
            for path in down {
                if now.get(&path) == after.get(&path) {
                    world.violation(format!("{path} is stopped and alive"));
                }
            }
            if now == after && !now.values().any(|(lifecycle, ..)| waits(lifecycle)) {
                return;
            }
            before = after;
            yield_now().await;
        }
    };
    if timeout(PATIENCE, rest).await.is_err() {
        world.violation("the tree never came to rest".into());
    }
}

/// Polls a future a few times, and drops it.
async fn poll_some(mut polls: u8, future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        if polls == 0 || future.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
