//! Applications that block their threads, and that the system stops for a while.

#![cfg(all(unix, feature = "signal"))]

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use tokio::time::sleep;
use verger::app::{Stage, StopStages};
use verger::{Application, ChildSpec, Context, Shutdown, Supervisor, worker};

use crate::programs::{Program, log_to_stderr, runtime};

/// Runs the program with this name, if there is one.
pub(crate) fn program(name: &str, threads: usize) -> Option<ExitCode> {
    let app = match name {
        "blocks for an hour" => blocks_for_an_hour(),
        // Its signals are a future like any other.
        "blocks for an hour, silently" => {
            blocks_for_an_hour().listen_to_signals(false).stop_on(verger::signals())
        }
        "beats" => beats(),
        "blocks from the start" => blocks_from_the_start(),
        _ => return None,
    };
    match name {
        "beats" | "blocks from the start" => log_warnings(),
        "blocks for an hour" => log_to_stderr(),
        _ => {}
    }
    // Not dropped: `main` would wait for the blocked threads.
    let runtime = std::mem::ManuallyDrop::new(runtime(threads));
    let code = runtime.block_on(app.run());
    eprintln!("run has returned");
    // As at the end of `main`, whose runtime waits for its threads.
    drop(std::mem::ManuallyDrop::into_inner(runtime));
    Some(code)
}

/// Logs all lines from `WARN` up.
fn log_warnings() {
    tracing_subscriber::fmt()
        .with_max_level(tracing::level_filters::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .without_time()
        .with_ansi(false)
        .init();
}

/// A child that blocks its thread when it is cancelled, beside one that doesn't.
fn blocks_for_an_hour() -> Application {
    let polite = |name: &str| {
        worker(name, async |ctx: Context| {
            eprintln!("{} up", ctx.path().name());
            ctx.cancelled().await;
            eprintln!("{} stopped", ctx.path().name());
        })
    };
    let blocks = worker("blocks", async |ctx: Context| {
        ctx.cancelled().await;
        eprintln!("blocking");
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_secs(3600));
    });
    let tree =
        Supervisor::builder("app").child(polite("a")).child(grace(blocks)).child(polite("b"));
    let stages =
        [Stage::Polite(Duration::from_millis(400)), Stage::Closing(Duration::from_millis(200))];
    Application::new(tree).stages(StopStages::new(stages)).exit_grace(Duration::from_millis(500))
}

fn grace(spec: ChildSpec) -> ChildSpec {
    spec.shutdown(Shutdown::Timeout(Duration::from_millis(200)))
}

/// A child that blocks its thread. Another one says so once the status counts it.
fn blocks_from_the_start() -> Application {
    let blocks = worker("blocks", async |_ctx: Context| {
        sleep(Duration::from_millis(10)).await;
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_secs(3600));
    });
    let looks = worker("looks", async |ctx: Context| {
        loop {
            let child = ctx.parent().which_child("blocks").await.unwrap();
            if child.long_polls > 0 {
                eprintln!("long polls: {}", child.long_polls);
                return ctx.cancelled().await;
            }
            sleep(Duration::from_millis(50)).await;
        }
    });
    let tree = Supervisor::builder("app").child(blocks).child(looks);
    Application::new(tree).stages(StopStages::new([])).exit_grace(Duration::from_millis(100))
}

/// A child that sends a heartbeat every 50 ms, and fails after a second without one.
fn beats() -> Application {
    let beats = worker("beats", async |ctx: Context| {
        for beat in 0_u32.. {
            ctx.heartbeat();
            if beat % 4 == 0 {
                eprintln!("beat {}", ctx.incarnation());
            }
            if ctx.run_until_cancelled(sleep(Duration::from_millis(50))).await.is_none() {
                break;
            }
        }
    });
    Application::new(Supervisor::builder("app").child(beats.watchdog(Duration::from_secs(1))))
}

#[test]
fn a_child_that_blocks_its_thread_is_named_and_the_process_ends_with_3() {
    let mut program = Program::start("blocks for an hour", 2);
    program.wait_for(&["a up", "b up"]);
    program.signal("TERM");
    // The others stop in order, although one thread is blocked.
    program.wait_for(&["b stopped", "blocking", "a stopped", "run has returned"]);
    let (code, lines) = program.end();
    assert_eq!(code, Some(3));
    let last = "ERROR verger::shutdown: ending the process: a thread is blocked code=3 children=\"app/blocks\"";
    assert_eq!(lines.last().map(|line| line.trim()), Some(last), "{lines:?}");
}

#[test]
fn a_child_that_blocks_one_of_two_threads_is_named_and_counted() {
    let mut program = Program::start("blocks from the start", 2);
    let line = " WARN verger::lifecycle: a poll of app/blocks has lasted 5s: does it block its thread? \
                child=app/blocks incarnation=1";
    program.wait_for(&[line, "long polls: 1"]);
    program.signal("KILL");
    program.end();
}

#[test]
fn a_child_that_blocks_the_only_thread_is_named_in_one_line() {
    let mut program = Program::start("blocks from the start", 1);
    let line = "ERROR verger::lifecycle: the runtime is stalled child=app waited=5s stuck=\"app/blocks for 5.";
    let named = program.read_until_start(line);
    assert!(!named.iter().any(|line| line.contains("has lasted")), "{named:?}");
    program.signal("KILL");
    program.end();
}

#[test]
fn if_all_threads_are_blocked_the_process_ends_with_3_as_well_and_names_the_child() {
    let mut program = Program::start("blocks for an hour", 1);
    program.wait_for(&["a up", "b up"]);
    program.signal("TERM");
    let (code, lines) = program.end();
    assert_eq!(code, Some(3));
    let last = "ERROR verger::shutdown: ending the process: a thread is blocked code=3 children=\"app/blocks\"";
    assert_eq!(lines.last().map(|line| line.trim()), Some(last), "{lines:?}");
}

#[test]
fn without_a_subscriber_the_last_line_is_on_stderr_and_signals_may_be_a_future_of_the_programs() {
    let mut program = Program::start("blocks for an hour, silently", 1);
    program.wait_for(&["a up", "b up"]);
    program.signal("TERM");
    let (code, lines) = program.end();
    assert_eq!(code, Some(3));
    let last = "verger: ending the process with code 3: a thread is blocked: app/blocks";
    assert_eq!(lines.last().map(|line| line.trim()), Some(last), "{lines:?}");
}

#[test]
fn a_process_that_the_system_stops_for_a_while_calls_no_child_hung() {
    let mut programs = [1, 2].map(|threads| Program::start("beats", threads));
    for program in &mut programs {
        program.wait_for(&["beat 1", "beat 1"]);
        program.signal("STOP");
    }
    // The one thing that can't be waited for: that nothing happens. Longer than the loops may take to turn.
    std::thread::sleep(Duration::from_secs(7));
    for mut program in programs {
        program.signal("CONT");
        let lines = program.read_until("beat 1", 20);
        let wrong = |line: &&String| {
            line.contains("hung:") || line.contains("stalled") || line.contains("has lasted")
        };
        assert_eq!(lines.iter().find(wrong), None);
        program.signal("TERM");
        assert_eq!(program.end().0, Some(0));
    }
}
