//! When a process is ready, and when it is healthy.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use verger::policy::OnExit;
use verger::process::{Output, ReadyWhen};
use verger::status::{Event, EventKind};
use verger::{ExitKind, HealthCheck, Lifecycle, command};

use crate::captured::Captured;
use crate::helper::helper;
use crate::{Marked, failure, once, script, shell, spawn};

#[tokio::test]
async fn a_line_makes_it_ready() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let child = script(&marked, "echo loading; head -n 1; echo now serving >&2; exec sleep 1000")
        .stdin_from(|mut stdin| async move {
            tokio::io::AsyncWriteExt::write_all(&mut stdin, b"go\n").await?;
            std::future::pending().await
        })
        .ready_when(ReadyWhen::line_contains("serving"));
    let tree = spawn(once(child));
    tree.up().await;
    // Those of two streams come in any order.
    let mut lines = [log.line().await, log.line().await, log.line().await];
    lines.sort();
    assert_eq!(lines, ["go", "loading", "now serving"]);
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn without_the_line_it_is_not_ready_and_its_activation_times_out() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let child = script(&marked, "echo loading; exec sleep 1000")
        .ready_when(ReadyWhen::line(|line| line.ends_with("serving")));
    let tree = spawn(child.into_child().activation_timeout(Duration::from_millis(500)));
    assert_eq!(log.line().await, "loading");
    tree.expect(["it: activating -> errored (activation_timed_out)"]).await;
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn an_exit_before_it_is_ready_is_a_failed_activation() {
    let marked = Marked::new();
    let child = script(&marked, "echo no database >&2; exit 7")
        .ready_when(ReadyWhen::line_contains("serving"));
    let tree = spawn(once(child));
    let reason = failure(&tree).await;
    assert_eq!(reason.to_string(), "activation failed: exited with code 7: no database");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_line_that_nothing_reads_is_refused() {
    let marked = Marked::new();
    let child = script(&marked, "echo serving")
        .stdout(Output::Null)
        .stderr(Output::Inherit)
        .ready_when(ReadyWhen::line_contains("serving"));
    let tree = spawn(once(child));
    let reason = failure(&tree).await;
    assert_eq!(
        reason.to_string(),
        "activation failed: it waits for a line of its process, which writes none that it could read; write \
         `Output::Capture` for stdout or stderr, or a different `ready_when`"
    );
    tree.stop().await;
}

#[tokio::test]
async fn a_port_that_accepts_makes_it_ready() {
    let marked = Marked::new();
    // Free once it is dropped.
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = script(&marked, "exec sleep 1000").ready_when(ReadyWhen::tcp(address));
    let tree = spawn(once(child));
    tree.wait_for("it", Lifecycle::Activating).await;
    let listener = TcpListener::bind(address).unwrap();
    tree.up().await;
    drop(listener.accept().unwrap());
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_process_says_that_it_is_ready_as_to_systemd() {
    let marked = Marked::new();
    let commands = marked.clone();
    let child = command("it", move || {
        let mut command = helper("notify");
        commands.mark(&mut command);
        command
    });
    let child = child.ready_when(ReadyWhen::notify()).ends_with_stdin();
    let tree = spawn(once(child));
    tree.up().await;
    let it = tree.handle().which_child("it").await.unwrap();
    let status = it.status.unwrap();
    assert!(status.starts_with("pid ") && status.ends_with(": serving"), "{status}");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_command_that_succeeds_makes_it_ready() {
    let marked = Marked::new();
    let commands = marked.clone();
    // The second command fails twice.
    let attempts = std::sync::atomic::AtomicU32::new(0);
    let asks = ReadyWhen::command(move || {
        let fails = attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2;
        shell(&commands, if fails { "exit 1" } else { "exit 0" })
    });
    let tree = spawn(once(script(&marked, "exec sleep 1000").ready_when(asks)));
    tree.up().await;
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_health_check_by_a_command_says_how_that_has_ended() {
    let marked = Marked::new();
    let commands = marked.clone();
    let check = HealthCheck::command(move || shell(&commands, "sleep 1000 & exit 4"))
        .initial_delay(Duration::ZERO)
        .failures(1);
    let tree = spawn(once(script(&marked, "exec sleep 1000")).health_check(check));
    tree.expect(["it: unhealthy"]).await;
    let unhealthy = |event: &Event| match &event.kind {
        EventKind::Unhealthy { problem } => Some(problem.to_string()),
        _ => None,
    };
    let problems: Vec<_> = tree.events().iter().filter_map(unhealthy).collect();
    assert_eq!(problems, ["`/bin/sh` exited with code 4"]);
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_panic_of_the_function_that_looks_for_the_line_fails_the_child() {
    let marked = Marked::new();
    let child = script(&marked, "echo serving; exec sleep 1000")
        .ready_when(ReadyWhen::line(|_| panic!("no such line")));
    let child = child.into_child().on_exit(ExitKind::Panicked, OnExit::FailSupervisor);
    let error = spawn(child).ended().await.unwrap_err().to_string();
    assert!(error.contains("panicked: no such line"), "{error}");
    marked.assert_gone();
}
