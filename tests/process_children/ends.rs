//! How processes end, and what follows.

use std::os::unix::process::ExitStatusExt;

use verger::policy::OnExit;
use verger::process::{ProcessExit, StopSignal};
use verger::testing::TestTree;
use verger::{ExitReason, RestartType, Supervisor, command};

use crate::captured::Captured;
use crate::helper::helper;
use crate::{Marked, failure, finished, once, script, shell, spawn};

/// Returns the error of a process that has failed.
fn exit_of(reason: &ExitReason) -> &ProcessExit {
    let ExitReason::Failed(error) = reason else { panic!("{reason:?}") };
    error.downcast_ref().unwrap()
}

#[tokio::test]
async fn exit_code_zero_is_a_normal_end_and_every_other_code_a_failure() {
    let marked = Marked::new();
    let tree = spawn(once(script(&marked, "exit 0")));
    finished(&tree).await;
    tree.stop().await;

    let tree = spawn(once(script(&marked, "echo one >&2; echo two >&2; echo out; exit 3")));
    let reason = failure(&tree).await;
    assert_eq!(reason.to_string(), "failed: exited with code 3: one | two");
    let exit = exit_of(&reason);
    assert_eq!((exit.code(), exit.signal()), (Some(3), None));
    assert_eq!(exit.stderr(), ["one", "two"]);
    assert_eq!(exit.to_string(), "exited with code 3");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_signal_is_a_failure_with_its_name() {
    let marked = Marked::new();
    for (signal, text) in [("KILL", "killed by SIGKILL (9)"), ("SEGV", "killed by SIGSEGV (11)")] {
        let tree = spawn(once(script(&marked, &format!("ulimit -c 0; kill -{signal} $$"))));
        let reason = failure(&tree).await;
        assert_eq!(reason.to_string(), format!("failed: {text}"));
        assert_eq!(exit_of(&reason).signal(), exit_of(&reason).status().signal());
        tree.stop().await;
    }
    marked.assert_gone();
}

#[tokio::test]
async fn further_codes_and_signals_can_be_successes() {
    let marked = Marked::new();
    for end in ["exit 0", "exit 2", "exit 75", "kill -INT $$"] {
        let child =
            script(&marked, end).success_exit_codes([2, 75]).success_signals([StopSignal::Int]);
        let tree = spawn(once(child));
        finished(&tree).await;
        tree.stop().await;
    }
    marked.assert_gone();
}

#[tokio::test]
async fn a_policy_decides_by_the_exit_code() {
    let marked = Marked::new();
    let commands = marked.clone();
    // The factory is called for each incarnation.
    let incarnation = std::sync::atomic::AtomicU32::new(0);
    let child = command("it", move || {
        let code = 10 + incarnation.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        shell(&commands, &format!("exit {code}"))
    });
    let child = child
        .into_child()
        .restart(RestartType::Temporary)
        .backoff(verger::Backoff::none())
        .restart_if(|exit: &ProcessExit| exit.code() == Some(10))
        .on_error(|exit: &ProcessExit| exit.code() == Some(11), OnExit::EndSupervisor);
    let tree = TestTree::spawn(Supervisor::builder("app").child(child));
    tree.expect([
        "it: active -> errored (failed)",
        "it: -> active",
        "it: active -> errored (failed)",
    ])
    .await;
    tree.ended().await.unwrap();
    marked.assert_gone();
}

#[tokio::test]
async fn a_failure_has_the_last_lines_of_stderr_only() {
    let marked = Marked::new();
    let _log = Captured::new();
    let tree =
        spawn(once(script(&marked, "seq 1 100000 >&2; echo the end >&2; exit 1").kept_lines(3)));
    let reason = failure(&tree).await;
    assert_eq!(exit_of(&reason).stderr(), ["99999", "100000", "the end"]);
    let text = "failed: exited with code 1: 99999 | 100000 | the end";
    assert_eq!(reason.to_string(), text);
    tree.stop().await;
    marked.assert_gone();
}

#[cfg(feature = "macros")]
#[tokio::test]
async fn a_field_of_a_supervisor_can_be_a_process() {
    #[verger::supervisor]
    struct App {
        #[child(restart = "transient")]
        it: verger::process::CommandSpec,
    }

    let marked = Marked::new();
    let tree = TestTree::spawn(App { it: script(&marked, "exit 0") }.builder());
    finished(&tree).await;
    tree.stop().await;
    marked.assert_gone();
}

#[test]
fn the_exit_code_is_known_where_the_program_was_started_with_the_signal_about_it_ignored() {
    let helper = helper("exits");
    let mut command = std::process::Command::new("env");
    command.arg("--ignore-signal=CHLD").arg(helper.get_program());
    command.args(helper.get_args());
    for (name, value) in helper.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().last(), Some("exit: failed: exited with code 3"), "{stderr}");
}
