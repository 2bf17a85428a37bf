//! Children whose future isn't `Send`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use verger::{Backoff, Context, Exit, RestartType, Shutdown, Supervisor, local};

use crate::{next_exit, start};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_local_child_keeps_an_rc_across_awaits() {
    let (sent, mut values) = mpsc::unbounded_channel();
    let child = local("script", move |ctx: Context| {
        let sent = sent.clone();
        async move {
            let calls = Rc::new(RefCell::new(0));
            let seen = Rc::clone(&calls);
            while ctx.run_until_cancelled(sleep(SECOND)).await.is_some() {
                let seen = Rc::clone(&seen);
                tokio::task::spawn_local(async move { *seen.borrow_mut() += 1 }).await.unwrap();
                sent.send((*calls.borrow(), Instant::now())).unwrap();
            }
        }
    });
    let began = Instant::now();
    let app = start(child).await;
    for count in 1..=3 {
        assert_eq!(values.recv().await, Some((count, began + count * SECOND)));
    }
    app.stop("enough").await.unwrap();
    assert_eq!(Instant::now(), began + 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn what_a_local_child_returns_or_panics_with_is_its_exit() {
    let child = local("script", async |ctx: Context| -> Exit {
        let held = Rc::new(ctx.incarnation());
        sleep(SECOND).await;
        match *held {
            1 => Ok(()),
            2 => Err("syntax".into()),
            _ => panic!("overflow"),
        }
    });
    let app = start(child.backoff(Backoff::none())).await;
    let mut events = app.events();
    assert_eq!(next_exit(&mut events).await, "ended normally");
    assert_eq!(next_exit(&mut events).await, "failed: syntax");
    assert_eq!(next_exit(&mut events).await, "panicked: overflow");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_abort_drops_a_local_future_on_its_own_thread() {
    struct Dropped(mpsc::UnboundedSender<bool>, std::thread::ThreadId);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id() == self.1);
        }
    }
    let (sent, mut dropped) = mpsc::unbounded_channel();
    let (began, mut begins) = mpsc::unbounded_channel();
    let child = local("script", move |_ctx: Context| {
        let (sent, began) = (sent.clone(), began.clone());
        async move {
            let _held = Dropped(sent.clone(), std::thread::current().id());
            let task = Dropped(sent, std::thread::current().id());
            tokio::task::spawn_local(async move {
                let _task = task;
                std::future::pending::<()>().await;
            });
            began.send(()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    let app = start(child.shutdown(Shutdown::BrutalKill)).await;
    begins.recv().await.unwrap();
    let mut events = app.events();
    app.stop_child("script").await.unwrap();
    assert_eq!(next_exit(&mut events).await, "killed");
    assert_eq!((dropped.try_recv(), dropped.try_recv()), (Ok(true), Ok(true)), "both, before");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_helper_drops_a_local_future() {
    let child = local("script", async |ctx: Context| {
        ctx.spawn(async { Err::<(), _>("the helper's error") });
        let _held = Rc::new(());
        std::future::pending::<()>().await;
    });
    let app = Supervisor::builder("app").child(child.restart(RestartType::Temporary));
    let mut app = app.build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    assert_eq!(next_exit(&mut events).await, "failed: the helper's error");
    app.stop("enough").await.unwrap();
}

#[tokio::test]
async fn a_local_child_has_the_clock_and_the_tasks_of_the_runtime() {
    let child = local("script", async |ctx: Context| {
        let sent = Rc::new(tokio::spawn(async { 7 }).await.unwrap());
        assert_eq!(*sent, 7);
        ctx.cancelled().await;
    });
    let app = start(child).await;
    app.stop("enough").await.unwrap();
}
