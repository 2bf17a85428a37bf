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
/// loop had turned.
type Look = (u64, u64, bool);

fn findings(looks: impl IntoIterator<Item = Look>) -> Vec<(u64, Finding)> {
    let began = Instant::now();
    let (mut now, mut progress) = (began, Progress::new(secs(5), began));
    let mut findings = Vec::new();
    for (after, late, turned) in looks {
        now += secs(after);
        let found = progress.observe(turned, now - secs(late), now);
        findings.extend(found.map(|found| ((now - began).as_secs(), found)));
    }
    findings
}

#[test]
fn a_loop_that_turns_within_the_bound_is_not_stuck() {
    assert_eq!(findings([(1, 0, true), (4, 0, false), (0, 0, true), (4, 0, false)]), []);
}

#[test]
fn a_loop_that_does_not_turn_is_reported_once_and_so_is_its_end() {
    let stuck = std::iter::repeat_n((1, 0, false), 9);
    let again = Finding::TurnsAgain { after: secs(10) };
    assert_eq!(
        findings(stuck.chain([(1, 0, true), (4, 0, false)])),
        [(5, Finding::Stuck), (10, again)]
    );
    let twice = [(5, 0, false), (1, 0, true), (4, 0, false), (1, 0, false)];
    let again = Finding::TurnsAgain { after: secs(6) };
    assert_eq!(findings(twice), [(5, Finding::Stuck), (6, again), (11, Finding::Stuck)]);
}

#[test]
fn the_time_by_which_the_thread_itself_was_late_does_not_count() {
    // As after a SIGSTOP, and then the loop turns.
    assert_eq!(findings([(3_600, 3_599, false), (1, 0, true)]), []);
    // The loop doesn't turn after it either.
    let found = findings([(3_600, 3_599, false), (3, 0, false), (1, 0, false), (1, 0, false)]);
    assert_eq!(found, [(3_604, Finding::Stuck)]);
    // An overloaded machine, on which the thread is late each time.
    assert_eq!(findings(std::iter::repeat_n((2, 1, false), 4)), []);
}

#[test]
fn the_thread_looks_when_the_bound_is_over_and_then_once_a_period() {
    let began = Instant::now();
    let mut progress = Progress::new(millis(1_500), began);
    assert_eq!(progress.next_look(secs(1), began), began + secs(1));
    assert_eq!(progress.next_look(secs(1), began + secs(1)), began + millis(1_500));
    progress.stuck = true;
    assert_eq!(progress.next_look(secs(1), began + secs(2)), began + secs(3));
}

#[test]
fn only_long_polls_are_named_and_the_longest_first() {
    let now = Instant::now();
    let poll = |name, time| RunningPoll { child: Path::root("app").join(name), since: now - time };
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

/// Starts a check of a tree. Returns the lines that it logs, which end with its thread.
fn check(root: &Root) -> (SelfCheck, Receiver<String>) {
    let (sender, lines) = mpsc::channel();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || Lines(sender.clone()))
        .finish();
    let settings = SelfCheckSettings { period: millis(5), bound: millis(500) };
    let check = tracing::subscriber::with_default(subscriber, || SelfCheck::start(root, settings));
    (check.unwrap(), lines)
}

/// Runs a tree with this many children on a runtime, lets them block their threads, and returns what the
/// check says of it, and then what it says once they have been released.
fn block_threads(mut runtime: tokio::runtime::Builder, children: usize) -> [String; 2] {
    let runtime = runtime.enable_time().build().unwrap();
    // The children block before the check begins, and a poll that began before the first watch isn't known.
    let _watch = PollWatch::new();
    let (begin, gate) = (Arc::new(Semaphore::new(0)), Arc::new(RwLock::new(())));
    let (blocks, blocked) = mpsc::channel();
    let app = (0..children).fold(Supervisor::builder("app"), |app, number| {
        let (begin, gate, blocks) = (Arc::clone(&begin), Arc::clone(&gate), blocks.clone());
        app.child(worker(format!("blocker{number}"), move |ctx: Context| {
            let (begin, gate, blocks) = (Arc::clone(&begin), Arc::clone(&gate), blocks.clone());
            async move {
                ctx.ready();
                begin.acquire().await.unwrap().forget();
                blocks.send(()).unwrap();
                drop(gate.read());
                ctx.cancelled().await;
            }
        }))
    });
    let _context = runtime.enter();
    let root = app.build().unwrap().spawn();
    runtime.block_on(root.up()).unwrap();
    let closed = gate.write();
    std::thread::scope(|scope| {
        // Drives a runtime that has no thread of its own.
        scope.spawn(|| runtime.block_on(root.handle().wait()));
        begin.add_permits(children);
        // All of them block before the check begins, however busy the machine is.
        (0..children).for_each(|_| blocked.recv().unwrap());
        let (check, lines) = check(&root);
        // An overloaded machine may have been late before.
        let stuck = lines.iter().find(|line| line.contains("blocker")).unwrap();
        assert!(!check.turning()());
        drop(closed);
        let again = lines.recv().unwrap();
        runtime.block_on(root.handle().stop("done")).unwrap();
        // The thread ends with the tree.
        lines.iter().for_each(drop);
        [stuck, again]
    })
}

#[test]
fn a_child_that_blocks_the_only_thread_is_named_and_the_end_is_logged() {
    let [stuck, again] = block_threads(tokio::runtime::Builder::new_current_thread(), 1);
    let text = "ERROR verger::lifecycle: the runtime doesn't turn supervisor=app waited=500ms \
                stuck=\"";
    // Children of other trees that block their threads are named, too.
    assert!(stuck.starts_with(text) && stuck.contains("app/blocker0 for "), "{stuck}");
    let text = "INFO verger::lifecycle: the runtime turns again supervisor=app took=";
    assert!(again.starts_with(text), "{again}");
}

#[test]
fn all_children_that_block_the_threads_of_a_runtime_are_named() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2);
    let [stuck, _] = block_threads(runtime, 2);
    assert!(stuck.contains("app/blocker0 for ") && stuck.contains("app/blocker1 for "), "{stuck}");
}

#[test]
fn the_thread_ends_when_the_check_is_dropped() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _context = runtime.enter();
    let root = Supervisor::builder("app").build().unwrap().spawn();
    let (check, lines) = check(&root);
    drop(check);
    lines.iter().for_each(drop);
}
