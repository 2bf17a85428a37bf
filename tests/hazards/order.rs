//! Many children that stop one after the other, on several threads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use verger::{Backoff, ChildSpec, Context, Exit, Strategy, Supervisor, SupervisorBuilder, worker};

/// Several times the number of children that a stop chain holds at once.
const CHILDREN: usize = 300;

/// The events of each child.
type Log = Arc<Mutex<Vec<(&'static str, usize)>>>;

struct Gone(usize, Log);

impl Drop for Gone {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(("gone", self.0));
    }
}

/// The first child fails on demand; each child needs two polls to exit.
fn app(log: &Log, up: mpsc::UnboundedSender<usize>) -> (SupervisorBuilder, Arc<Notify>) {
    let fails = Arc::new(Notify::new());
    let mut app = Supervisor::builder("app");
    for n in 0..CHILDREN {
        let (log, up, fails) = (Arc::clone(log), up.clone(), Arc::clone(&fails));
        let run = move |ctx: Context| {
            let (log, up, fails) = (Arc::clone(&log), up.clone(), Arc::clone(&fails));
            async move {
                let _gone = Gone(n, Arc::clone(&log));
                up.send(n).unwrap();
                tokio::select! {
                    () = ctx.cancelled() => {}
                    () = fails.notified(), if n == 0 => return Err("connection refused".into()),
                }
                log.lock().unwrap().push(("asked", n));
                tokio::task::yield_now().await;
                Exit::Ok(())
            }
        };
        app = app.child(worker(format!("child-{n}"), run));
    }
    (app.restarts(10, Duration::from_secs(60)), fails)
}

/// The children begin in any order, on two threads.
async fn all_of(up: &mut mpsc::UnboundedReceiver<usize>) {
    let mut children = Vec::new();
    while children.len() < CHILDREN {
        children.extend(up.recv().await);
    }
    children.sort_unstable();
    assert!(children.into_iter().eq(0..CHILDREN));
}

fn one_by_one(from: usize) -> Vec<(&'static str, usize)> {
    (from..CHILDREN).rev().flat_map(|n| [("asked", n), ("gone", n)]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_children_is_cancelled_after_the_next_one_has_exited() {
    let log = Log::default();
    let (up, _up) = mpsc::unbounded_channel();
    let (app, _) = app(&log, up);
    let app = app.build().unwrap().start().await.unwrap();

    app.stop("done").await.unwrap();

    assert_eq!(*log.lock().unwrap(), one_by_one(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_child_of_a_group_is_cancelled_in_turn_and_all_restart() {
    let log = Log::default();
    let (up, mut is_up) = mpsc::unbounded_channel();
    let (app, fails) = app(&log, up);
    let app = app.strategy(Strategy::OneForAll).build().unwrap().start().await.unwrap();
    all_of(&mut is_up).await;

    fails.notify_one();
    all_of(&mut is_up).await;
    let group = std::mem::take(&mut *log.lock().unwrap());
    app.stop("done").await.unwrap();

    assert_eq!(group[0], ("gone", 0), "it has failed");
    assert_eq!(group[1..], one_by_one(1));
    assert_eq!(*log.lock().unwrap(), one_by_one(0));
}

/// Ends `length` after its cancellation, and fails on demand.
fn slow(name: &'static str, length: u64, log: &Names, fails: &Arc<Notify>) -> ChildSpec {
    let (log, fails) = (Arc::clone(log), Arc::clone(fails));
    let run = move |ctx: Context| {
        let (log, fails) = (Arc::clone(&log), Arc::clone(&fails));
        async move {
            tokio::select! {
                () = ctx.cancelled() => {}
                () = fails.notified(), if name == "c" => return Err("connection refused".into()),
            }
            log.lock().unwrap().push(format!("{name} is asked"));
            tokio::time::sleep(Duration::from_secs(length)).await;
            log.lock().unwrap().push(format!("{name} ends"));
            Exit::Ok(())
        }
    };
    worker(name, run).shutdown(Duration::from_secs(60))
}

type Names = Arc<Mutex<Vec<String>>>;

#[tokio::test(start_paused = true)]
async fn a_child_started_after_a_group_that_stays_down_exits_before_the_next_is_cancelled() {
    let (log, fails) = (Names::default(), Arc::new(Notify::new()));
    let group = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let group = ["a", "b", "c"].iter().fold(group, |group, name| {
        let child = slow(name, 10, &log, &fails);
        group.child(child.backoff(Backoff::constant(Duration::from_secs(3600))))
    });
    let app = group.build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;

    fails.notify_one();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The group stays down, so its siblings can be started.
    app.stop_child("c").await.unwrap();
    app.start_child(slow("d", 20, &log, &fails)).await.unwrap();
    let _ = tokio::time::timeout(Duration::from_secs(1), app.stop_child("d")).await;
    app.stop("done").await.unwrap();

    let story = ["b is asked", "d is asked", "b ends", "d ends", "a is asked", "a ends"];
    assert_eq!(*log.lock().unwrap(), story);
}
