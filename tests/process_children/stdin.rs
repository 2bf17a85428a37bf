//! The stdin of processes, and their environment.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Pid;

use crate::captured::Captured;
use crate::helper::helper;
use crate::marked::{ended, open};
use crate::{Marked, failure, finished, once, script, spawn};

#[tokio::test]
async fn stdin_has_its_end_at_once_or_after_what_it_is_given() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, "cat; echo end")));
    finished(&tree).await;
    assert_eq!(log.line().await, "end");
    tree.stop().await;

    let tree = spawn(once(script(&marked, "cat; echo end").stdin_bytes("a\nb\n")));
    finished(&tree).await;
    for line in ["a", "b", "end"] {
        assert_eq!(log.line().await, line);
    }
    tree.stop().await;

    // It reads a part of it only.
    let tree = spawn(once(script(&marked, "head -c 1; exit 0").stdin_bytes(vec![b'x'; 1 << 20])));
    finished(&tree).await;
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_function_that_fails_to_write_fails_the_child() {
    let marked = Marked::new();
    let child = script(&marked, "cat")
        .stdin_from(async |_stdin| Err(std::io::Error::other("the source is empty")));
    let tree = spawn(once(child));
    let reason = failure(&tree).await;
    let text = "the stdin of the process can't be written: the source is empty";
    assert!(reason.to_string().ends_with(text), "{reason}");
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_process_that_reads_its_stdin_ends_with_a_program_that_is_killed() {
    let marked = Marked::new();
    let mut command = helper("tree");
    marked.mark(&mut command);
    // As a service manager sets them.
    command.env("NOTIFY_SOCKET", "/run/no").env("LISTEN_FDS", "1").env("LISTEN_PID", "7");
    command.env("LISTEN_FDNAMES", "http").env("WATCHDOG_USEC", "1").env("WATCHDOG_PID", "7");
    let mut program =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();

    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map(Result::unwrap);
    let (mut pid, mut variables) = (None, Vec::new());
    for line in lines.by_ref() {
        if line == "listed" {
            break;
        } else if let Some(number) = line.strip_prefix("ends ") {
            pid = Pid::from_raw(number.parse().unwrap());
        } else if let Some(variable) = line.strip_prefix("variable ") {
            variables.push(variable.split('=').next().unwrap().to_owned());
        }
    }
    let pid = pid.expect("`ends` is started before `lists` is");
    assert!(variables.iter().any(|it| it == "VERGER_TEST_MARK"), "{variables:?}");
    let meant_for_us = |name: &&String| {
        ["NOTIFY_", "LISTEN_", "WATCHDOG_"].iter().any(|prefix| name.starts_with(prefix))
    };
    assert_eq!(variables.iter().find(meant_for_us), None);

    let reads = open(pid);
    program.kill().unwrap();
    program.wait().unwrap();
    ended(reads).await;
    // The other one lives on, as the documentation says.
    let left = marked.alive();
    assert_eq!(left.len(), 1, "{left:?}");
}
