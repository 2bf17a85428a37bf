//! The end of a runtime while its tree starts, restarts a group, stops, or has messages in hand.
//!
//! The tree runs on a thread and a runtime of its own. The callers are on another runtime, which goes on,
//! so each of them has to be answered.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout;
use verger::mailbox::{Address, Inbox, Reply};
use verger::{
    Context, Exit, Lifecycle, Readiness, Shutdown, Strategy, Supervisor, SupervisorHandle,
    mailbox_with_capacity, worker, worker_with, worker_with_mailbox,
};

/// Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Start,
    Running,
    GroupRestart,
    Stop,
}

/// A tree whose last child never becomes ready at [`Moment::Start`]. `a` takes one message and answers
/// none, and `b` ignores its cancellation.
fn tree(
    moment: Moment,
    handle: mpsc::Sender<SupervisorHandle>,
    taken: &Arc<AtomicBool>,
) -> (Address<Reply<()>>, Supervisor) {
    let (address, mailbox) = mailbox_with_capacity(1);
    let taken = Arc::clone(taken);
    let a = worker_with_mailbox("a", mailbox, move |_ctx, mut inbox: Inbox<Reply<()>>| {
        let taken = Arc::clone(&taken);
        async move {
            let _in_hand = inbox.recv().await;
            taken.store(true, Ordering::Relaxed);
            pending::<Exit>().await
        }
    });
    let b = worker_with("b", handle, async |ctx: Context, handle| -> Exit {
        // The receiver is gone if the test has failed.
        let _ = handle.send(ctx.parent());
        pending().await
    });
    let c = worker("c", async |_ctx: Context| -> Exit { pending().await });
    let c = c.shutdown(Shutdown::BrutalKill);
    let c = if moment == Moment::Start { c.readiness(Readiness::Signal) } else { c };
    let app = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let app = app.child(a).child(b.shutdown(Shutdown::Infinity)).child(c);
    (address, app.build().unwrap())
}

/// Waits until a child is in a state.
async fn reach(app: &SupervisorHandle, child: &str, state: Lifecycle) {
    while app.which_child(child).await.unwrap().lifecycle != state {
        yield_now().await;
    }
}

/// Ends the runtime of a tree at a moment, and checks that every caller is answered with an error.
async fn check(runtime: Runtime, moment: Moment) {
    let (sender, handles) = mpsc::channel();
    let taken = Arc::new(AtomicBool::new(false));
    let (address, tree) = tree(moment, sender, &taken);
    let (end, ended) = oneshot::channel::<()>();
    let thread = thread::spawn(move || {
        runtime.block_on(async {
            tokio::spawn(async move {
                let _running = tree.start().await;
                pending::<()>().await;
            });
            let _ = ended.await;
        });
    });
    let app = handles.recv_timeout(PATIENCE).expect("`b` starts");

    let ask = || {
        tokio::spawn({
            let address = address.clone();
            async move { address.ask(|reply| reply).await.is_err() }
        })
    };
    // The first is in hand, the second waits in the mailbox.
    let first = ask();
    while !taken.load(Ordering::Relaxed) {
        yield_now().await;
    }
    let mut callers = vec![first, ask()];
    let (of_wait, of_stop, of_call) = (app.clone(), app.clone(), app.clone());
    callers.push(tokio::spawn(async move { of_wait.wait().await.is_err() }));
    match moment {
        Moment::Start => reach(&app, "c", Lifecycle::Activating).await,
        Moment::Running => reach(&app, "c", Lifecycle::Active).await,
        Moment::GroupRestart => {
            reach(&app, "c", Lifecycle::Active).await;
            callers.push(tokio::spawn(async move { of_call.restart("a").await.is_err() }));
            reach(&app, "b", Lifecycle::Deactivating).await;
        }
        Moment::Stop => {
            reach(&app, "c", Lifecycle::Active).await;
            callers.push(tokio::spawn(async move { of_stop.stop("enough").await.is_err() }));
            reach(&app, "b", Lifecycle::Deactivating).await;
        }
    }
    end.send(()).unwrap();

    for (number, caller) in callers.into_iter().enumerate() {
        let answered = timeout(PATIENCE, caller).await;
        assert!(answered.expect("an answer").unwrap(), "{moment:?}: caller {number} had no error");
    }
    thread.join().unwrap();
    assert!(address.is_closed(), "{moment:?}");
}

#[test]
fn a_runtime_that_ends_at_any_moment_leaves_no_caller_without_an_answer() {
    let callers = Builder::new_current_thread().enable_time().build().unwrap();
    for moment in [Moment::Start, Moment::Running, Moment::GroupRestart, Moment::Stop] {
        let current = Builder::new_current_thread().enable_all().build().unwrap();
        callers.block_on(check(current, moment));
        let several = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        callers.block_on(check(several, moment));
    }
}
