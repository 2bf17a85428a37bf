//! What is left of a process: nothing of its group, and with containment nothing at all.

use std::fs;
use std::time::Duration;

use verger::process::{KillMode, own_cgroup};
use verger::{ExitReason, Lifecycle, RestartType};

use crate::captured::Captured;
use crate::helper::helper;
use crate::marked::{ended, open};
use crate::{Marked, failure, finished, once, script, spawn};

/// Prints `started` once both grandchildren run.
const GRANDCHILD: &str = "sleep 1000 & echo started";
/// The shell that has left the session says so itself.
const ESCAPED: &str = "setsid sh -c 'echo started; exec sleep 1000' & wait";

#[tokio::test]
async fn a_grandchild_is_killed_when_its_parent_ends_or_is_stopped_or_killed() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, &format!("{GRANDCHILD}; exit 0"))));
    finished(&tree).await;
    assert_eq!(log.line().await, "started");
    marked.assert_gone();
    tree.stop().await;

    let tree = spawn(once(script(&marked, &format!("{GRANDCHILD}; wait"))));
    assert_eq!(log.line().await, "started");
    assert_eq!(marked.alive().len(), 2);
    tree.stop().await;
    marked.assert_gone();

    let child = script(&marked, &format!("{GRANDCHILD}; wait")).into_child();
    let tree = spawn(child.restart(RestartType::Permanent));
    assert_eq!(log.line().await, "started");
    tree.kill("it").await;
    tree.wait_for("it", Lifecycle::Active).await;
    assert_eq!(log.line().await, "started");
    assert_eq!(marked.alive().len(), 2, "those of the second incarnation");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_grandchild_that_ignores_the_stop_signal_is_killed_after_the_grace() {
    let marked = Marked::new();
    let mut log = Captured::new();
    // What the shell ignores, its child ignores as well; the shell itself ends.
    let stubborn = "sh -c \"trap '' TERM; echo started; while :; do sleep 1000; done\" & wait";
    let child = script(&marked, stubborn).into_child();
    let tree = spawn(child.shutdown(Duration::from_millis(300)));
    assert_eq!(log.line().await, "started");
    tree.handle().stop_child("it").await.unwrap();
    let it = tree.handle().which_child("it").await.unwrap();
    assert!(matches!(*it.last_exit.unwrap().reason, ExitReason::Killed));
    marked.assert_gone();
    tree.stop().await;
}

/// A server that needs a moment to stop, started by a shell that ends at the signal.
const WRAPPED: &str =
    "sh -c 'trap \"sleep 0.2; echo flushed; exit\" TERM; echo started; sleep 1000 & wait' & wait";

#[tokio::test]
async fn each_process_of_the_group_has_the_grace_also_when_its_leader_has_ended() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, WRAPPED)));
    assert_eq!(log.line().await, "started");
    tree.handle().stop_child("it").await.unwrap();
    marked.assert_gone();
    assert_eq!(log.line().await, "flushed");
    tree.stop().await;
}

#[tokio::test]
async fn with_the_kill_mode_mixed_the_leader_alone_gets_the_stop_signal() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let leader = "trap 'echo stopping; exit' TERM; \
                  sh -c \"trap 'echo signalled' TERM; echo started; while :; do sleep 0.1; done\" & \
                  while :; do wait; done";
    let child = script(&marked, leader).kill_mode(KillMode::Mixed);
    let tree = spawn(once(child));
    assert_eq!(log.line().await, "started");
    tree.handle().stop_child("it").await.unwrap();
    marked.assert_gone();
    assert_eq!(log.line().await, "stopping");
    assert_eq!(log.rest(), []);
    tree.stop().await;
}

#[tokio::test]
async fn a_grandchild_that_has_left_the_group_remains_without_containment() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, ESCAPED)));
    assert_eq!(log.line().await, "started");
    let before = marked.alive();
    tree.stop().await;

    let left = marked.alive();
    assert_eq!(left.len(), 1, "{left:?} of {before:?}");
    let (pid, escaped) = (left[0].0, open(left[0].0));
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    ended(escaped).await;
}

#[tokio::test]
async fn a_grandchild_that_has_left_the_group_is_found_by_its_mark() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, ESCAPED).kill_marked()));
    assert_eq!(log.line().await, "started");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_grandchild_that_has_left_the_group_is_in_the_cgroup() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let parent = own_cgroup().ok().filter(|it| can_create_in(it));
    let Some(parent) = parent else {
        eprintln!("processes: no cgroup is delegated to this program, so nothing was checked");
        return;
    };
    // Long after the process was moved: it waits for the end of its stdin.
    let escaped = format!("cat; {ESCAPED}");
    let child = script(&marked, &escaped).cgroup(&parent).stdin_bytes("go\n");
    let tree = spawn(once(child));
    assert_eq!(log.line().await, "go");
    assert_eq!(log.line().await, "started");
    assert_eq!(cgroups(&parent).len(), 1);
    tree.stop().await;
    marked.assert_gone();
    assert_eq!(cgroups(&parent), [""; 0]);
}

#[tokio::test]
async fn a_cgroup_that_can_not_be_made_is_named() {
    let marked = Marked::new();
    let tree = spawn(once(script(&marked, "exit 0").cgroup("/no/such/cgroup")));
    let reason = failure(&tree).await.to_string();
    let before = "activation failed: the cgroup `/no/such/cgroup/verger-";
    assert!(reason.starts_with(before), "{reason}");
    assert!(reason.ends_with("can't be used: No such file or directory (os error 2)"), "{reason}");
    tree.stop().await;
}

#[test]
fn the_first_process_of_a_container_reaps_what_it_has_killed() {
    let marked = Marked::new();
    let mut command = helper("first");
    marked.mark(&mut command);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().last(), Some("children: \"\""), "{stderr}");
    marked.assert_gone();
}

fn can_create_in(parent: &std::path::Path) -> bool {
    let probe = parent.join(format!("verger-probe-{}", std::process::id()));
    let created = fs::create_dir(&probe).is_ok();
    let kills = probe.join("cgroup.kill").exists();
    let _ = fs::remove_dir(&probe);
    created && kills
}

/// Returns the cgroups that this program has made.
fn cgroups(parent: &std::path::Path) -> Vec<String> {
    let ours = format!("verger-{}-", std::process::id());
    let entries = fs::read_dir(parent).unwrap().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&ours)).collect()
}
