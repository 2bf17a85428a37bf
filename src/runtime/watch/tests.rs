use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, RwLock};

use tokio::sync::Semaphore;

use super::*;
use crate::app::run::Root;
use crate::path::Path;
use crate::{Context, Supervisor, worker};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What one look of the thread saw: the time since the last look, how late the thread was, and whether the
/// loop had answered.
type Look = (u64, u64, bool);

fn findings(looks: impl IntoIterator<Item = Look>) -> Vec<(u64, Finding)> {
    let began = Instant::now();
    let (mut now, mut progress) = (began, LoopProgress::new(secs(5), began));
    let mut findings = Vec::new();
    for (after, late, answered) in looks {
        now += secs(after);
        let found = progress.observe(answered, now - secs(late), now);
        findings.extend(found.map(|found| ((now - began).as_secs(), found)));
    }
    findings
}

#[test]
fn a_loop_that_makes_progress_within_the_bound_is_not_stalled() {
    assert_eq!(findings([(1, 0, true), (4, 0, false), (0, 0, true), (4, 0, false)]), []);
}

#[test]
fn a_loop_that_makes_no_progress_is_reported_once_and_so_is_its_recovery() {
    let stalled = std::iter::repeat_n((1, 0, false), 9);
    let recovered = Finding::Recovered { after: secs(10) };
    assert_eq!(
        findings(stalled.chain([(1, 0, true), (4, 0, false)])),
        [(5, Finding::Stalled), (10, recovered)]
    );
    let twice = [(5, 0, false), (1, 0, true), (4, 0, false), (1, 0, false)];
    let recovered = Finding::Recovered { after: secs(6) };
    assert_eq!(findings(twice), [(5, Finding::Stalled), (6, recovered), (11, Finding::Stalled)]);
}

#[test]
fn the_time_by_which_the_thread_itself_was_late_is_not_measured() {
    // As after a SIGSTOP, and then the loop answers.
    assert_eq!(findings([(3_600, 3_599, false), (1, 0, true)]), []);
    // The loop doesn't answer after it either.
    let found = findings([(3_600, 3_599, false), (3, 0, false), (1, 0, false), (1, 0, false)]);
    assert_eq!(found, [(3_604, Finding::Stalled)]);
    // An overloaded machine, on which the thread is late each time.
    assert_eq!(findings(std::iter::repeat_n((2, 1, false), 4)), []);
}

/// Looks each second at a poll of one child. Returns when it was reported, and how long it had lasted.
fn reports(looks: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64, bool)> {
    let began = Instant::now();
    let (mut now, mut polls) = (began, LongPolls::default());
    let mut found = Vec::new();
    for (after, late) in looks {
        now += secs(after);
        let known = [(Path::root("app"), began)];
        let report = polls.observe(known, now - secs(late), now)[0];
        let seconds = |report: LongPoll| report.lasted.as_secs();
        let at = (now - began).as_secs();
        found.extend(report.map(|report| (at, seconds(report), report.is_first)));
    }
    found
}

#[test]
fn a_poll_is_reported_after_5_s_and_then_each_time_that_it_has_lasted_twice_as_long() {
    let found = reports(std::iter::repeat_n((1, 0), 41));
    assert_eq!(found, [(5, 5, true), (10, 10, false), (20, 20, false), (40, 40, false)]);
}

#[test]
fn a_poll_that_the_system_has_suspended_for_an_hour_has_not_lasted_long() {
    let found = reports([(1, 0), (3_600, 3_599), (1, 0), (1, 0), (1, 0)]);
    assert_eq!(found, [(3_604, 5, true)]);
}

#[test]
fn a_second_poll_of_a_child_is_a_different_one() {
    let began = Instant::now();
    let mut polls = LongPolls::default();
    let child = Path::root("app");
    let (fifth, tenth) = (began + secs(5), began + secs(10));
    let first = LongPoll { lasted: secs(5), is_first: true };
    assert_eq!(polls.observe([(child.clone(), began)], fifth, fifth), [Some(first)]);
    assert_eq!(polls.observe([], fifth, fifth), []);
    assert_eq!(polls.observe([(child, fifth)], tenth, tenth), [Some(first)]);
}

#[test]
fn only_long_polls_are_named_and_the_longest_first() {
    let now = Instant::now();
    let poll = |name, time| RunningPoll {
        child: Path::root("app").join(name),
        incarnation: crate::child::orphan::incarnation(1),
        since: now - time,
    };
    let polls = [poll("a", millis(7_250)), poll("b", secs(5)), poll("c", millis(2_499))];
    assert_eq!(stuck_text(&polls, secs(5), now), "app/a for 7.2s, app/b for 5s");
    assert_eq!(stuck_text(&polls[2..], secs(5), now), "no child is known");
}

/// Sends each line that is logged.
#[derive(Clone)]
struct Lines(Sender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(bytes).trim().to_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Watches a tree. Returns the lines that are logged for it, which end with the watch.
fn watched(root: &Root, runtime: &tokio::runtime::Runtime) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || Lines(sender.clone()))
        .finish();
    let (root, runtime) = (Arc::clone(&root.shared), runtime.handle().clone());
    tracing::subscriber::with_default(subscriber, || watch(&root, runtime, millis(500)));
    lines
}

/// How long a test waits for something that takes at most a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the first line that contains `part`.
#[track_caller]
fn wait_for(lines: &Receiver<String>, part: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if line.contains(part) {
            return line;
        }
        seen.push(line);
    }
    panic!("no line with `{part}` within {PATIENCE:?}; the lines: {seen:?}");
}

/// Waits until the watch of a tree has ended.
#[track_caller]
fn wait_for_end(lines: &Receiver<String>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(_) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the tree is still watched after {PATIENCE:?}, although it has ended")
            }
        }
    }
}

/// Runs a tree with this many children on a runtime, lets them block their threads, and returns what is
/// logged of it, and then what is logged once they have been released.
///
/// If an assertion fails, the children are released, and the thread that drives the tree is left alone.
fn block_threads(mut runtime: tokio::runtime::Builder, children: usize) -> [String; 2] {
    let runtime = Arc::new(runtime.enable_time().build().unwrap());
    // A poll that began before the first watch isn't known.
    let _watch = PollWatch::new();
    let (begin, gate) = (Arc::new(Semaphore::new(0)), Arc::new(RwLock::new(())));
    let (blocks, blocked) = mpsc::channel();
    let app = (0..children).fold(Supervisor::builder("app"), |app, number| {
        let (begin, gate, blocks) = (Arc::clone(&begin), Arc::clone(&gate), blocks.clone());
        app.child(worker(format!("blocker{number}"), move |ctx: Context| {
            let (begin, gate, blocks) = (Arc::clone(&begin), Arc::clone(&gate), blocks.clone());
            async move {
                begin.acquire().await.unwrap().forget();
                blocks.send(()).unwrap();
                drop(gate.read());
                ctx.cancelled().await;
            }
        }))
    });
    let context = runtime.enter();
    let root = app.build().unwrap().spawn();
    runtime.block_on(root.up()).unwrap();
    drop(context);
    let handle = root.handle();
    // Drives a runtime that has no thread of its own.
    let drives = std::thread::spawn({
        let (runtime, handle) = (Arc::clone(&runtime), handle.clone());
        move || runtime.block_on(handle.wait())
    });
    let closed = gate.write();
    begin.add_permits(children);
    // All of them block before the watch begins, however busy the machine is.
    let deadline = Instant::now() + PATIENCE;
    let mut count = 0;
    while count < children {
        assert!(Instant::now() < deadline, "{count} of {children} children block their threads");
        match blocked.recv_timeout(PERIOD) {
            Ok(()) => count += 1,
            // A child may be queued where only a worker that wakes finds it.
            Err(_) => drop(runtime.spawn(std::future::ready(()))),
        }
    }
    let lines = watched(&root, &runtime);
    let stalled = wait_for(&lines, "blocker");
    assert!(!root.shared.tree.watch.makes_progress());
    drop(closed);
    let recovered = wait_for(&lines, "the runtime has recovered");
    assert!(root.shared.tree.watch.makes_progress());
    drop(runtime.spawn(async move { handle.stop("done").await }));
    drives.join().unwrap().unwrap();
    wait_for_end(&lines);
    [stalled, recovered]
}

#[test]
fn a_child_that_blocks_the_only_thread_is_named_and_the_recovery_is_logged() {
    let mut one_worker = tokio::runtime::Builder::new_multi_thread();
    one_worker.worker_threads(1);
    for runtime in [tokio::runtime::Builder::new_current_thread(), one_worker] {
        let [stalled, recovered] = block_threads(runtime, 1);
        let text = "ERROR verger::lifecycle: the runtime is stalled child=app waited=500ms \
                    stuck=\"";
        // Children of other trees that block their threads are named, too.
        assert!(stalled.starts_with(text) && stalled.contains("app/blocker0 for "), "{stalled}");
        let text = "INFO verger::lifecycle: the runtime has recovered child=app took=";
        assert!(recovered.starts_with(text), "{recovered}");
    }
}

#[test]
fn all_children_that_block_the_threads_of_a_runtime_are_named() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2);
    let [stalled, _] = block_threads(runtime, 2);
    let all = ["app/blocker0 for ", "app/blocker1 for "];
    assert!(all.iter().all(|name| stalled.contains(name)), "{stalled}");
}

#[test]
fn a_tree_that_switches_the_check_off_is_not_watched() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _context = runtime.enter();
    let root = Supervisor::builder("app").self_check(false).build().unwrap().spawn();
    // The subscriber is dropped without a watch.
    wait_for_end(&watched(&root, &runtime));
}

#[test]
fn the_watch_of_a_tree_ends_with_its_root() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let context = runtime.enter();
    let root = Supervisor::builder("app").build().unwrap().spawn();
    drop(context);
    let lines = watched(&root, &runtime);
    let handle = root.handle();
    drop((root, runtime));
    wait_for_end(&lines);
    drop(handle);
}
