//! How processes are stopped.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use verger::app::{StopStages, hook};
use verger::process::StopSignal;
use verger::{Application, ExitReason, Lifecycle, Shutdown, Supervisor, command};

use crate::captured::Captured;
use crate::{Marked, script, shell, spawn};

/// Stops a child, and returns how it has failed to stop in order, if it has.
async fn stopped(
    child: impl Into<verger::ChildSpec>,
    log: &mut Captured,
) -> Option<Arc<ExitReason>> {
    let tree = spawn(child);
    assert_eq!(log.line().await, "started");
    tree.handle().stop_child("it").await.unwrap();
    let it = tree.handle().which_child("it").await.unwrap();
    assert_eq!(it.lifecycle, Lifecycle::Stopped);
    tree.stop().await;
    it.last_exit.map(|last| last.reason)
}

#[tokio::test]
async fn the_end_by_the_stop_signal_is_orderly_whether_it_is_handled_or_not() {
    let marked = Marked::new();
    let mut log = Captured::new();
    for end in ["", "trap 'exit 0' TERM;", "trap 'exit 143' TERM;"] {
        let child = script(&marked, &format!("{end} sleep 1000 & echo started; wait"));
        let failure = stopped(child, &mut log).await;
        assert!(failure.is_none(), "{end}: {failure:?}");
    }
    let child = script(&marked, "trap 'exit 3' TERM; sleep 1000 & echo started; wait");
    let failure = stopped(child, &mut log).await.unwrap();
    assert_eq!(failure.to_string(), "failed: exited with code 3");
    marked.assert_gone();
}

#[tokio::test]
async fn the_stop_signal_can_be_a_different_one() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let child =
        script(&marked, "trap '' TERM; trap 'exit 0' USR1; echo started; sleep 1000 & wait")
            .stop_signal(StopSignal::Usr1);
    assert!(stopped(child, &mut log).await.is_none());
    marked.assert_gone();
}

#[tokio::test]
async fn a_process_that_ignores_the_stop_signal_is_killed_after_its_grace() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let stubborn = "trap '' TERM; echo started; while :; do sleep 1000; done";
    for shutdown in [Shutdown::Timeout(Duration::from_millis(200)), Shutdown::BrutalKill] {
        let child = script(&marked, stubborn).into_child().shutdown(shutdown);
        let failure = stopped(child, &mut log).await.unwrap();
        assert!(matches!(*failure, ExitReason::Killed), "{shutdown}: {failure}");
        marked.assert_gone();
    }
}

#[tokio::test]
async fn a_suspended_process_gets_the_stop_signal() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(script(&marked, "trap 'exit 0' TERM; echo started; sleep 1000 & wait"));
    assert_eq!(log.line().await, "started");
    for (pid, _) in marked.alive() {
        kill_process(pid, Signal::STOP).unwrap();
    }
    tree.handle().stop_child("it").await.unwrap();
    let it = tree.handle().which_child("it").await.unwrap();
    assert!(it.last_exit.is_none(), "{:?}", it.last_exit);
    marked.assert_gone();
    tree.stop().await;
}

#[tokio::test]
async fn a_process_that_the_stop_signal_ends_in_the_drain_is_not_restarted() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (drains, drain) = tokio::sync::oneshot::channel::<()>();
    let child = script(&marked, "echo started; exec sleep 1000").into_child();
    let app = Application::new(Supervisor::builder("app").child(child))
        .listen_to_signals(false)
        .stages(StopStages::default().drain(Duration::from_secs(2)))
        .before_stop(hook("seen", async |_cause| drains.send(()).unwrap()))
        .stop_on(async { stopped.await.unwrap() });
    let app = tokio::spawn(app.run_to_end());
    assert_eq!(log.line().await, "started");
    stop.send(()).unwrap();
    drain.await.unwrap();
    // As systemd does, which signals each process of the unit.
    for (pid, _) in marked.alive() {
        kill_process(pid, Signal::TERM).unwrap();
    }
    app.await.unwrap().unwrap();
    assert_eq!(log.rest(), [], "it wasn't started again");
    marked.assert_gone();
}

#[tokio::test]
async fn a_process_that_floods_its_output_is_stopped() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let child = script(&marked, "echo started; exec yes");
    assert!(stopped(child, &mut log).await.is_none());
    marked.assert_gone();
}

#[test]
fn a_runtime_that_is_dropped_kills_the_group() {
    let marked = Marked::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let commands = marked.clone();
    let processes = runtime.block_on(async {
        let it = command("it", move || shell(&commands, "sleep 1000 & echo serving; wait"))
            .ready_when(verger::process::ReadyWhen::line_contains("serving"));
        let app = verger::Supervisor::builder("app").child(it).build().unwrap();
        // Neither awaited nor stopped.
        std::mem::forget(app.start().await.unwrap());
        let alive = marked.alive();
        assert_eq!(alive.len(), 2, "{alive:?}");
        alive.into_iter().map(|(pid, _)| crate::marked::open(pid)).collect::<Vec<_>>()
    });
    drop(runtime);

    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        for process in processes {
            crate::marked::ended(process).await;
        }
    });
}
