//! OS processes as children: what they write, how they end, how they are stopped, and what is left of them.
//!
//! All of them are real. Each command of a test has a variable of that test in its environment, so that what is left
//! of it can be found in `/proc`.

#![cfg(target_os = "linux")]

mod captured;
mod ends;
mod groups;
mod helper;
#[allow(dead_code, reason = "this binary uses a part of it")]
#[path = "../common/log.rs"]
mod log;
mod marked;
mod output;
mod readiness;
mod spawning;
mod stdin;
mod stops;

use std::process::Command;
use std::time::Duration;

use verger::policy::OnExit;
use verger::process::{CommandError, CommandSpec, ProcessExit};
use verger::testing::TestTree;
use verger::{ChildSpec, ExitReason, Lifecycle, RestartType, Supervisor};

use self::marked::Marked;

/// Returns a shell that runs this script.
fn shell(marked: &Marked, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    marked.mark(&mut command);
    command
}

/// Describes the child `it`, which runs this script.
fn script(marked: &Marked, script: &str) -> CommandSpec {
    let (marked, script) = (marked.clone(), script.to_owned());
    verger::command("it", move || shell(&marked, &script))
}

/// Describes a child that stays down once it has ended, however it does.
fn once(spec: impl Into<ChildSpec>) -> ChildSpec {
    let spec = spec.into().restart(RestartType::Transient).shutdown(Duration::from_secs(60));
    spec.on_error(|_: &ProcessExit| true, OnExit::Leave)
        .on_error(|_: &CommandError| true, OnExit::Leave)
}

/// Returns a tree with this child alone.
fn spawn(child: impl Into<ChildSpec>) -> TestTree {
    TestTree::spawn(Supervisor::builder("app").child(child.into()))
        .patience(Duration::from_secs(300))
}

/// Waits until the child has ended normally.
async fn finished(tree: &TestTree) {
    tree.wait_for("it", Lifecycle::Stopped).await;
    let it = tree.handle().which_child("it").await.unwrap();
    assert!(it.last_exit.is_none(), "{:?}", it.last_exit);
}

/// Waits until the child has failed, and returns how.
async fn failure(tree: &TestTree) -> ExitReason {
    tree.wait_for("it", Lifecycle::Errored).await;
    let it = tree.handle().which_child("it").await.unwrap();
    (*it.last_exit.expect("it has ended").reason).clone()
}
