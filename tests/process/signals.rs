//! The future of signals: how many there may be, how long each listens, and what the second signal says.

#![cfg(all(unix, feature = "signal"))]

use std::fs::File;
use std::future::{Future, pending};
use std::pin::pin;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use tracing::{Event, Level, Metadata, Subscriber, span};
use verger::app::OsSignal;
use verger::{
    Application, ChildSpec, Context, DynamicSupervisor, Exit, Shutdown, Supervisor,
    mailbox_with_capacity, signals, worker, worker_with_mailbox,
};

use crate::programs::{Program, app, log_to_stderr, runtime};
use verger::app::{Stage, StopStages};
use verger::mailbox::Inbox;

// --- The programs --------------------------------------------------------------------------------

/// Runs the program with this name.
pub(crate) fn program(name: &str, threads: usize) -> ExitCode {
    match name {
        "unpolled" => unpolled(),
        "two trees" => runtime(threads).block_on(two_trees()),
        "one of two dropped" => one_of_two_dropped(),
        "a thousand" => a_thousand(),
        "all dropped" => all_dropped(),
        "made later" => made_later(),
        "no more files" => no_more_files(),
        "late" => runtime(threads).block_on(late()),
        "late, logged" => {
            log_to_stderr();
            runtime(threads).block_on(late())
        }
        "late, with a log that blocks" => {
            tracing::subscriber::set_global_default(Blocks).unwrap();
            runtime(threads).block_on(late())
        }
        "late after a dynamic supervisor" => runtime(threads).block_on(late_below_dynamic()),
        "stopping without a tree" => stopping_without_a_tree(),
        "blocked application" => runtime(threads).block_on(blocked_application()),
        "source" => runtime(threads).block_on(source(false)),
        "source beside a message" => runtime(threads).block_on(source(true)),
        other => panic!("there is no program {other:?}"),
    }
}

/// Polls once, with a waker that does nothing.
fn poll(future: impl Future<Output = OsSignal>) -> Poll<OsSignal> {
    pin!(future).poll(&mut task::Context::from_waker(Waker::noop()))
}

/// Blocks the main thread for good.
fn park() -> ! {
    loop {
        std::thread::park();
    }
}

/// Makes a future outside of any runtime, and polls it for the first time after the signal.
fn unpolled() -> ExitCode {
    let unpolled = signals();
    let other = signals();
    eprintln!("made");
    runtime(1).block_on(other);
    eprintln!("{:?}", poll(unpolled));
    ExitCode::SUCCESS
}

async fn two_trees() -> ExitCode {
    let tree = |name: &str| {
        let child = worker("a", async |ctx: Context| {
            eprintln!("{} up", ctx.path());
            ctx.cancelled().await;
            eprintln!("{} stopped", ctx.path());
        });
        Supervisor::builder(name).child(child).build().unwrap().with_graceful_shutdown(signals())
    };
    let (one, two) = tokio::join!(tree("one").into_future(), tree("two").into_future());
    one.and(two).unwrap();
    ExitCode::SUCCESS
}

fn one_of_two_dropped() -> ExitCode {
    let (mut dropped, left) = (Box::pin(signals()), signals());
    assert_eq!(poll(&mut dropped), Poll::Pending);
    drop(dropped);
    eprintln!("listening");
    eprintln!("{}", runtime(1).block_on(left));
    ExitCode::SUCCESS
}

fn a_thousand() -> ExitCode {
    for _ in 0..1_000 {
        let mut signals = Box::pin(signals());
        assert_eq!(poll(&mut signals), Poll::Pending);
    }
    let last = signals();
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    let names = threads.map(|thread| name(thread.unwrap()).unwrap());
    eprintln!("{} thread", names.filter(|name| name == "verger-signals\n").count());
    eprintln!("{}", runtime(1).block_on(last));
    ExitCode::SUCCESS
}

fn all_dropped() -> ExitCode {
    let mut dropped = Box::pin(signals());
    assert_eq!(poll(&mut dropped), Poll::Pending);
    drop((dropped, signals()));
    eprintln!("dropped");
    park()
}

/// Drops a future unpolled that has received a signal, and then makes another one.
fn made_later() -> ExitCode {
    let (first, unpolled) = (signals(), signals());
    eprintln!("listening");
    runtime(1).block_on(first);
    drop(unpolled);
    eprintln!("{:?}", poll(signals()));
    ExitCode::SUCCESS
}

/// Uses up the files that it may open before it listens.
fn no_more_files() -> ExitCode {
    log_to_stderr();
    let files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    eprintln!("{:?} {:?}", poll(signals()), poll(signals()));
    drop(files);
    eprintln!("{:?}", poll(signals()));
    park()
}

fn ignoring(name: &str) -> ChildSpec {
    let ignores = worker(name, async |ctx: Context| {
        eprintln!("{} up", ctx.path());
        ctx.cancelled().await;
        eprintln!("{} goes on", ctx.path());
        pending::<()>().await;
    });
    ignores.shutdown(Shutdown::Infinity)
}

/// A child below another supervisor ignores its cancellation. Children that were not cancelled yet, and
/// those that have stopped, are not late.
async fn late() -> ExitCode {
    let obeys = |name| worker(name, async |ctx: Context| ctx.cancelled().await);
    let ingest = Supervisor::builder("ingest");
    let ingest = ingest.child(obeys("a")).child(ignoring("mqtt")).child(obeys("b"));
    let tree = app().child(ignoring("db")).child(ingest).child(obeys("http")).build().unwrap();
    tree.with_graceful_shutdown(signals()).run_to_exit_code().await
}

/// The children of a dynamic supervisor stop at the same time, so the supervisor itself is named.
async fn late_below_dynamic() -> ExitCode {
    let conns = DynamicSupervisor::builder("conns");
    let starts = worker("starts", async |ctx: Context| -> Exit {
        ctx.parent().supervisor("conns").await?.start_child(ignoring("conn")).await?;
        ctx.cancelled().await;
        Ok(())
    });
    let tree = app().child(conns).child(starts).build().unwrap();
    tree.with_graceful_shutdown(signals()).run_to_exit_code().await
}

/// Consumes the first signal, and takes longer than that for its own end.
fn stopping_without_a_tree() -> ExitCode {
    let first = signals();
    eprintln!("listening");
    eprintln!("{}", runtime(1).block_on(first));
    park()
}

/// Blocks the only thread of its runtime before the signal comes.
async fn blocked_application() -> ExitCode {
    let blocks = worker("a", async |_ctx| {
        eprintln!("blocking");
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv();
    });
    let polite = Stage::Polite(Duration::from_millis(50));
    let app = Application::new(app().child(blocks)).stages(StopStages::new([polite]));
    app.exit_grace(Duration::from_millis(50)).run().await
}

/// A child receives what comes first, a signal or a message, and then does without signals.
async fn source(message: bool) -> ExitCode {
    let (address, mailbox) = mailbox_with_capacity::<&str>(1);
    if message {
        address.try_send("a message").unwrap();
    }
    let run = async |ctx: Context, mut inbox: Inbox<&'static str>| -> Exit {
        tokio::select! {
            signal = signals() => eprintln!("received {signal}"),
            message = inbox.recv() => eprintln!("received {}", message.unwrap()),
            () = async { eprintln!("listening"); pending().await } => {}
        }
        ctx.cancelled().await;
        Ok(())
    };
    let tree = app().child(worker_with_mailbox("a", mailbox, run));
    tree.build().unwrap().run_to_exit_code().await
}

/// A subscriber that never returns from an error.
struct Blocks;

impl Subscriber for Blocks {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "verger::shutdown" && *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, _event: &Event<'_>) {
        eprintln!("logging");
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_secs(60));
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

// --- The tests -----------------------------------------------------------------------------------

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

#[test]
fn a_signal_before_the_first_poll_resolves_the_future_at_its_first_poll() {
    let signals = [("HUP", "Hangup"), ("INT", "Interrupt"), ("TERM", "Terminate")];
    for (signal, ready) in signals.map(|(signal, name)| (signal, format!("Ready({name})"))) {
        let mut program = Program::start("unpolled", 1);
        program.wait_for(&["made"]);
        program.signal(signal);
        assert_eq!(program.end(), (Some(0), vec![ready]));
    }
}

#[test]
fn kin_144_one_signal_stops_two_trees_in_order() {
    for threads in [1, 2] {
        let mut program = Program::start("two trees", threads);
        program.wait_for(&["one/a up", "two/a up"]);
        program.signal("TERM");
        let (code, mut printed) = program.end();
        printed.sort();
        assert_eq!((code, printed), (Some(0), lines(&["one/a stopped", "two/a stopped"])));
    }
}

#[test]
fn kin_144_a_dropped_future_leaves_the_others_listening() {
    let mut program = Program::start("one of two dropped", 1);
    program.wait_for(&["listening"]);
    program.signal("TERM");
    assert_eq!(program.end(), (Some(0), lines(&["SIGTERM"])));
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_futures_share_one_thread() {
    let mut program = Program::start("a thousand", 1);
    program.wait_for(&["1 thread"]);
    program.signal("TERM");
    assert_eq!(program.end(), (Some(0), lines(&["SIGTERM"])));
}

#[test]
fn without_a_future_a_signal_ends_the_process() {
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mut program = Program::start("all dropped", 1);
        program.wait_for(&["dropped"]);
        program.signal(signal);
        assert_eq!(program.end(), (Some(code), vec![]));
    }
}

#[test]
fn a_future_that_is_made_after_the_first_signal_resolves_at_once() {
    let mut program = Program::start("made later", 1);
    program.wait_for(&["listening"]);
    program.signal("INT");
    assert_eq!(program.end(), (Some(0), lines(&["Ready(Interrupt)"])));
}

#[test]
fn without_handlers_an_error_is_logged_once_and_signals_have_their_default() {
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n 32 && exec "$0" "$@""#]);
    command.arg(std::env::current_exe().unwrap());
    let mut program = Program::start_by(command, "no more files", 1);
    let error = "Too many open files (os error 24)";
    program.wait_for(&[
        &format!("ERROR verger::shutdown: can't listen for signals error=\"{error}\""),
        "Pending Pending",
        "Pending",
    ]);
    program.signal("TERM");
    // Ended by the signal itself.
    assert_eq!(program.end(), (None, vec![]));
}

#[test]
fn seed4_49_a_second_signal_ends_at_once_and_names_what_still_runs() {
    for (first, second, code) in [("INT", "TERM", 143), ("TERM", "INT", 130)] {
        for threads in [1, 2] {
            let mut program = Program::start("late", threads);
            program.wait_for(&["app/db up", "app/ingest/mqtt up"]);
            program.signal(first);
            program.wait_for(&["app/ingest/mqtt goes on"]);
            let late = format!(
                "verger: second SIG{second}: ending at once, still running: app/ingest/mqtt"
            );
            assert_eq!(program.end_by(second), (Some(code), vec![late]));
        }
    }
}

#[test]
fn seed4_49_what_still_runs_is_logged_where_a_subscriber_takes_it() {
    let mut program = Program::start("late, logged", 1);
    program.wait_for(&["app/db up", "app/ingest/mqtt up"]);
    program.signal("INT");
    program.wait_for(&["app/ingest/mqtt goes on"]);
    let late = "ERROR verger::shutdown: second SIGTERM: ending at once \
                still_running=\"app/ingest/mqtt\"";
    assert_eq!(program.end_by("TERM"), (Some(143), lines(&[late])));
}

#[test]
fn seed4_49_a_log_that_blocks_does_not_keep_the_second_signal_from_ending_the_process() {
    let mut program = Program::start("late, with a log that blocks", 1);
    program.wait_for(&["app/db up", "app/ingest/mqtt up"]);
    program.signal("INT");
    program.wait_for(&["app/ingest/mqtt goes on"]);
    assert_eq!(program.end_by("TERM"), (Some(143), lines(&["logging"])));
}

#[test]
fn seed4_49_children_that_stop_together_are_named_by_their_supervisor() {
    let mut program = Program::start("late after a dynamic supervisor", 1);
    program.wait_for(&["app/conns/conn#1 up"]);
    program.signal("INT");
    program.wait_for(&["app/conns/conn#1 goes on"]);
    let late = "verger: second SIGTERM: ending at once, still running: app/conns";
    assert_eq!(program.end_by("TERM"), (Some(143), lines(&[late])));
}

#[test]
fn a_second_signal_ends_the_process_also_if_the_future_has_been_consumed() {
    let mut program = Program::start("stopping without a tree", 1);
    program.wait_for(&["listening"]);
    program.signal("TERM");
    program.wait_for(&["SIGTERM"]);
    assert_eq!(
        program.end_by("INT"),
        (Some(130), lines(&["verger: second SIGINT: ending at once"]))
    );
}

#[test]
fn a_blocked_application_ends_after_its_stages_and_its_grace() {
    let mut program = Program::start("blocked application", 1);
    program.wait_for(&["blocking"]);
    program.signal("TERM");
    let last = "verger: ending the process with code 3: a thread is blocked: app/a";
    assert_eq!(program.end(), (Some(3), lines(&[last])));
}

#[test]
fn kin_146_a_signal_is_received_like_a_message() {
    let mut program = Program::start("source", 1);
    program.wait_for(&["listening"]);
    program.signal("TERM");
    program.wait_for(&["received SIGTERM"]);
    // The tree goes on: nothing but the child listened.
    let late = "verger: second SIGINT: ending at once, still running: app";
    assert_eq!(program.end_by("INT"), (Some(130), lines(&[late])));
}

#[test]
fn kin_146_a_dropped_source_is_detached() {
    let mut program = Program::start("source beside a message", 1);
    program.wait_for(&["received a message"]);
    program.signal("TERM");
    assert_eq!(program.end(), (Some(143), vec![]));
}
