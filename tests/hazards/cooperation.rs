//! Loops over futures that are ready, which share a thread with another task.
//!
//! tokio polls a task until it is pending. Each future of the crate that can be ready again and again takes a
//! step of the task's budget, so that the loop yields when the budget is used up. Those that stay ready once
//! they are, such as `Context::cancelled`, take none, as in tokio.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use verger::bus::Request;
use verger::mailbox::{AskError, Inbox, Next, Reply, WhileDown};
use verger::policy::RestartPolicy;
use verger::resilience::{CircuitBreaker, Retry, retry};
use verger::task::{PartitionedSupervisor, TaskSupervisor};
use verger::{Backoff, Context, DynamicSupervisor, Exit, mailbox, once, worker_with_mailbox};

use crate::probe::{start, tree};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs `next` again and again until another task of the same thread has run.
macro_rules! assert_yields {
    ($what:literal, $next:expr) => {{
        let has_run = Arc::<AtomicBool>::default();
        let other = Arc::clone(&has_run);
        let other = tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
        let mut rounds = 0;
        while !has_run.load(Ordering::Relaxed) {
            rounds += 1;
            assert!(rounds < 10_000, "{} starves other tasks", $what);
            $next;
        }
        other.await.unwrap();
    }};
}

struct Nobody;

impl Request for Nobody {
    type Reply = ();
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_messages_that_are_ready_yields() {
    let (address, inbox) = mailbox::<u32>();
    let sender = address.clone();
    let (done, is_done) = oneshot::channel();
    let done = Mutex::new(Some(done));
    let child = worker_with_mailbox("reads", inbox, move |_ctx, mut inbox: Inbox<u32>| {
        let (sender, done) = (sender.clone(), done.lock().unwrap().take());
        async move {
            let send = || sender.try_send(1).unwrap();
            assert_yields!("recv", (send(), inbox.recv().await));
            assert_yields!("next", (send(), inbox.next().await));
            assert_yields!("deliver", (send(), inbox.deliver().await.unwrap().ack()));
            while inbox.try_recv().is_some() {}
            assert_yields!("next_delivery", {
                send();
                let Next::Message(message) = inbox.next_delivery().await else { panic!() };
                message.ack();
            });
            assert_yields!("send", (sender.send(1).await.unwrap(), inbox.try_recv()));
            done.unwrap().send(()).unwrap();
        }
    });
    let app = start(tree().child(child)).await;
    is_done.await.unwrap();

    app.stop_child("reads").await.unwrap();
    assert_yields!("send to a mailbox that is closed", address.send(1).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_questions_that_are_not_answered_yields() {
    let (address, inbox) = mailbox::<Reply<u32>>();
    let inbox = inbox.while_down(WhileDown::DeadLetter);
    let child = worker_with_mailbox("fails", inbox, async |_ctx, _inbox| -> Exit {
        Err("on purpose".into())
    });
    let app = start(tree().child(child.backoff(Backoff::constant(HOUR)))).await;
    let error = address.ask(|reply| reply).await.unwrap_err();
    assert!(matches!(error, AskError::Undelivered { .. }), "{error}");
    assert_yields!("ask, down", address.ask(|reply| reply).await.unwrap_err());

    app.stop_child("fails").await.unwrap();
    let error = address.ask(|reply| reply).await.unwrap_err();
    assert!(matches!(error, AskError::Closed { .. }), "{error}");
    assert_yields!("ask, stopped", address.ask(|reply| reply).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_calls_of_a_handle_yields() {
    let app = start(tree()).await;
    assert_yields!("supervisor", app.supervisor("mid").await.unwrap());
    assert_yields!("supervisor, invalid", app.supervisor("a//b").await.unwrap_err());
    assert_yields!("child, invalid", app.child("a//b").await.unwrap_err());
    assert_yields!("set_policy, invalid", {
        app.set_policy("a//b", RestartPolicy::new()).await.unwrap_err()
    });
    assert_yields!("until_started", app.until_started().await);
    assert_yields!("bus().call", app.bus().call(Nobody, None).await.unwrap_err());
    let (mut letters, bus) = (app.dead_letters(), app.bus());
    assert_yields!("dead_letters", {
        bus.emit(());
        letters.next().await.unwrap()
    });

    app.stop("done").await.unwrap();
    assert_yields!("wait", app.wait().await.unwrap());
    assert_yields!("stop", app.stop("again").await.unwrap());
    assert_yields!("child, ended", app.child("active").await.unwrap_err());
    assert_yields!("supervisor, ended", app.supervisor("mid").await.unwrap_err());
    assert_yields!("status, ended", app.status().await.unwrap_err());
    assert_yields!("subscribe_status, ended", drop(app.subscribe_status().await.unwrap_err()));
    assert_yields!("children, ended", app.children().await.unwrap_err());
    assert_yields!("which_child, ended", app.which_child("active").await.unwrap_err());
    assert_yields!("count_children, ended", app.otp().count_children().await.unwrap_err());
    assert_yields!("child_spec, ended", app.child_spec("active").await.unwrap_err());
    assert_yields!("restart, ended", app.restart("active").await.unwrap_err());
    assert_yields!("resume, ended", app.resume("active").await.unwrap_err());
    assert_yields!("hold, ended", app.hold("active").await.unwrap_err());
    assert_yields!("start_child, ended", {
        let child = verger::worker("new", async |ctx: Context| ctx.cancelled().await);
        app.start_child(child).await.unwrap_err()
    });
    assert_yields!("set_policy, ended", {
        app.set_policy("active", RestartPolicy::new()).await.unwrap_err()
    });
    assert_yields!("clear_policy, ended", app.clear_policy("active").await.unwrap_err());
    assert_yields!("service of a handle, ended", app.service::<u32>().await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_services_and_locks_yields() {
    let (done, is_done) = oneshot::channel();
    let child = once("provides", async |ctx: Context| {
        ctx.provide(1_u32).unwrap();
        let mut service = ctx.watch_service::<u32>();
        assert_yields!("service", ctx.service::<u32>().await.unwrap());
        assert_yields!("get", service.get().await.unwrap());
        assert_yields!("changed", {
            ctx.withdraw::<u32>();
            ctx.provide(1_u32).unwrap();
            service.changed().await.unwrap()
        });
        assert_yields!("lock", drop(ctx.lock("door").await.unwrap()));
        let handle = ctx.parent();
        assert_yields!("service of a handle", handle.service::<u32>().await.unwrap());
        ctx.cancelled().await;
        assert_yields!("lock, cancelled", drop(ctx.lock("door").await.unwrap_err()));
        assert_yields!("run_until_cancelled", ctx.run_until_cancelled(ready(())).await);
        done.send(()).unwrap();
    });
    let app = start(tree().child(child)).await;
    app.stop_child("provides").await.unwrap();
    is_done.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_tasks_and_partitions_yields() {
    let partitions = PartitionedSupervisor::new("sessions", 2, |_| DynamicSupervisor::builder("a"));
    let tasks = TaskSupervisor::new("tasks");
    let _app = start(tree().child(partitions.spec()).child(tasks.spec())).await;
    assert_yields!("handle", tasks.handle().await.unwrap());
    assert_yields!("partition", partitions.partition(&1).await.unwrap());
    assert_yields!("try_partition", partitions.try_partition(&1).await.unwrap());
    let mut stream = tasks.map(0.., ready).stream();
    assert_yields!(
        "shutdown of a task",
        tasks.spawn("a/b", ready(())).shutdown().await.unwrap_err()
    );
    assert_yields!("a task", tasks.spawn("a/b", ready(())).await.unwrap_err());
    assert_yields!("stream", stream.next().await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_retries_and_calls_of_a_breaker_yields() {
    let breaker = CircuitBreaker::<&str>::new("service").max_failures(1);
    assert_yields!("breaker", breaker.call(|| ready(Ok(()))).await.unwrap());
    breaker.call(|| ready(Err::<(), _>("on purpose"))).await.unwrap_err();
    assert_yields!("breaker, open", breaker.call(|| ready(Ok(()))).await.unwrap_err());
    let call = || ready(Ok::<_, String>(()));
    assert_yields!("retry", retry(Retry::new(), call).await.unwrap());
}
