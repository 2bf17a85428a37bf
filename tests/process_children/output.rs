//! What processes write: lines of any number and length, and a log that takes none.

use std::fs;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use verger::ExitReason;
use verger::process::Output;

use crate::captured::{Captured, Logged};
use crate::{Marked, failure, finished, once, script, spawn};

fn logged(stream: &str, line: &str) -> Logged {
    Logged {
        message: "output".to_owned(),
        child: "app/it".to_owned(),
        incarnation: 1,
        stream: stream.to_owned(),
        line: line.to_owned(),
        count: 0,
    }
}

#[tokio::test]
async fn each_line_is_logged_with_its_child_and_stream() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, "printf 'one\\n\\303\\244 \\377\\r\\nlast'; exit 0")));
    finished(&tree).await;
    for line in ["one", "ä \u{fffd}", "last"] {
        assert_eq!(log.next().await, logged("stdout", line));
    }
    tree.stop().await;

    let tree = spawn(once(script(&marked, "echo out; echo err >&2").stdout(Output::Null)));
    finished(&tree).await;
    assert_eq!(log.next().await, logged("stderr", "err"));
    assert_eq!(log.rest(), []);
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn the_status_shows_the_process_and_its_last_line() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let tree = spawn(once(script(&marked, "echo pid $$; exec sleep 1000")));
    let pid = log.line().await;
    let it = tree.handle().which_child("it").await.unwrap();
    assert_eq!(it.status, Some(format!("{pid}: {pid}")));
    tree.stop().await;
    marked.assert_gone();
}

/// The console, verger-top and the program read them there.
#[cfg(feature = "log-lines")]
#[tokio::test]
async fn the_last_lines_of_both_streams_are_kept_with_the_log_lines_of_the_child() {
    use tracing_subscriber::layer::SubscriberExt;

    let marked = Marked::new();
    let lines = verger::log_lines::LogLines::new();
    let subscriber = tracing_subscriber::registry().with(lines.layer());
    let _for_this_thread = tracing::subscriber::set_default(subscriber);
    let tree = spawn(once(script(&marked, "echo one; echo two; exit 0").stderr(Output::Null)));
    finished(&tree).await;

    let kept = lines.of("app/it").current;
    let output: Vec<_> = kept.iter().filter(|line| line.message == "output").collect();
    let fields = |line: &&verger::log_lines::LogLine| line.fields.clone();
    assert_eq!(
        output.iter().map(fields).collect::<Vec<_>>(),
        ["stream=stdout line=one", "stream=stdout line=two"]
    );
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test]
async fn a_line_of_ten_megabytes_is_cut_and_the_next_one_is_whole() {
    let marked = Marked::new();
    let mut log = Captured::new();
    let long = "head -c 10485760 /dev/zero | tr '\\0' x; echo; echo next";
    let tree = spawn(once(script(&marked, long)));
    finished(&tree).await;
    let cut = format!("{}… (cut)", "x".repeat(16 * 1024));
    assert_eq!(log.next().await, logged("stdout", &cut));
    assert_eq!(log.next().await, logged("stdout", "next"));
    assert_eq!(log.rest(), []);
    tree.stop().await;
    marked.assert_gone();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_stderr_takes_no_memory_and_its_end_is_kept() {
    let marked = Marked::new();
    // Counted here, and not captured.
    let peak_before = peak_memory();
    let flood = "line=$(head -c 65535 /dev/zero | tr '\\0' x); \
                 yes \"$line\" | head -c 1073741824 >&2; echo >&2; echo the end >&2; exit 1";
    let tree = spawn(once(script(&marked, flood)));
    let reason = failure(&tree).await;
    let ExitReason::Failed(error) = &reason else { panic!("{reason}") };
    let exit: &verger::process::ProcessExit = error.downcast_ref().unwrap();
    assert_eq!(exit.code(), Some(1));
    assert_eq!(exit.stderr().len(), 20);
    assert_eq!(exit.stderr()[0], format!("{}… (cut)", "x".repeat(1024)));
    assert_eq!(exit.stderr()[19], "the end");
    let grown = peak_memory() - peak_before;
    assert!(grown < 100 * 1024, "{grown} KiB");
    tree.stop().await;
    marked.assert_gone();
}

/// Returns the most memory that this process has had, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_log_that_takes_no_line_stops_no_process_and_says_what_it_has_missed() {
    let marked = Marked::new();
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let mut log = Captured::with(move |_| {
        // Blocks until the other end is dropped.
        let _ = released.lock().unwrap().recv();
    });
    // More than the pipe and the queue hold.
    let tree = spawn(once(script(&marked, "seq 1 1000000; echo the end >&2; exit 1")));
    let reason = failure(&tree).await;
    assert_eq!(reason.to_string(), "failed: exited with code 1: the end");
    marked.assert_gone();
    assert_eq!(log.rest(), []);

    drop(release);
    let mut next = 1;
    let missed = loop {
        let logged = log.next().await;
        if logged.message != "output" {
            break logged;
        }
        assert_eq!(logged.line, next.to_string());
        next += 1;
    };
    assert_eq!(missed.message, "the log was too slow: lines were dropped");
    // Each line counts as 64 bytes of 256 KiB, and up to sixteen had been taken.
    assert!((4096 + 1..=4096 + 16).contains(&(next - 1)), "{next}");
    assert!(missed.count > 900_000, "{missed:?}");
    tree.stop().await;
}
