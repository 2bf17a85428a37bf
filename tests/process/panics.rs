//! The opt-in panic hook: where panics are reported.
//!
//! The hook belongs to the process, so each case is a process of its own. The test binary runs itself, with
//! an environment variable that selects the case.

use std::panic::catch_unwind;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Duration;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use verger::periodic::RunContext;
use verger::{Context, Exit, Supervisor, every, install_panic_hook, worker};

const CHOICE: &str = "VERGER_TEST_PANIC";

/// The entry point of a case. As an ordinary test, it finds none selected and returns.
#[test]
fn case() {
    let Ok(name) = std::env::var(CHOICE) else { return };
    match name.as_str() {
        "without the hook" => log_to_stdout(),
        "with the hook" => {
            log_to_stdout();
            install_panic_hook();
            install_panic_hook();
        }
        "without a subscriber" => install_panic_hook(),
        "with a subscriber that panics" => {
            tracing::subscriber::set_global_default(PanicsAtPanics).unwrap();
            install_panic_hook();
        }
        "in runs" => {
            log_to_stdout();
            install_panic_hook();
            run_periodically();
            return;
        }
        "aborting" => {
            log_to_stdout();
            install_panic_hook();
            run(async {
                let _bomb = Bomb;
                panic!("before the abort");
            });
        }
        other => panic!("there is no case {other:?}"),
    }
    run(panic_everywhere());
    let _ = std::thread::spawn(|| panic!("after all")).join();
}

fn log_to_stdout() {
    tracing_subscriber::fmt()
        .with_env_filter("verger::panic=error,verger::restart=warn,verger::periodic=warn")
        .with_ansi(false)
        .without_time()
        .init();
}

/// Runs a tree with one child that fails, and prints the error.
#[expect(clippy::print_stdout, reason = "the test reads it")]
fn run(child: impl Future<Output = Exit> + Send + 'static) {
    let child = Mutex::new(Some(child));
    let child = worker("child", move |_ctx| child.lock().unwrap().take().unwrap());
    let dropped = worker("dropped", async |ctx: Context| {
        let _bomb = Bomb;
        ctx.cancelled().await;
    });
    let tree = Supervisor::builder("app").restarts(0, Duration::from_secs(60));
    let tree = tree.child(dropped).child(child).build().unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let ended = runtime.enable_all().start_paused(true).build().unwrap().block_on(tree.run());
    println!("RESULT {}", ended.unwrap_err());
}

/// Panics in a child, in a panic that the child catches, in a drop, and outside of the child.
async fn panic_everywhere() -> Exit {
    let _ = std::thread::spawn(|| panic!("in a thread")).join();
    let _ = tokio::spawn(async { panic!("in a task") }).await;
    let _ = catch_unwind(|| panic!("caught by the child"));
    panic!("in a child");
}

/// Runs a tree with a periodic child whose two runs panic. The first one also catches a panic.
fn run_periodically() {
    let job = every("job", Duration::from_secs(10), async |run: RunContext| -> Exit {
        if run.number() == 1 {
            let _ = catch_unwind(|| panic!("caught by the run"));
        }
        panic!("in a run");
    });
    let app = Supervisor::builder("app").child(job).build().unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        let tree = app.start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(15)).await;
        tree.stop("done").await.unwrap();
    });
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

/// Panics at the line about a panic.
struct PanicsAtPanics;

impl Subscriber for PanicsAtPanics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "verger::panic"
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        panic!("the log is full");
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// What a case printed.
struct Printed {
    /// Where stderr says that a panic happened, and the message.
    stderr: Vec<String>,
    /// The log and the result.
    stdout: Vec<String>,
    output: Output,
}

fn printed(case: &str, backtrace: &str) -> Printed {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panics::case", "--nocapture"])
        .env(CHOICE, case)
        .env("RUST_BACKTRACE", backtrace)
        .output()
        .unwrap();
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let (mut stdout, stderr) = (lines(&output.stdout), lines(&output.stderr));
    stdout.retain(|line| line.starts_with("ERROR") || line.starts_with("RESULT"));
    let is_ours = |line: &String| MESSAGES.contains(&&**line) || line.starts_with("verger");
    let stderr = stderr.into_iter().filter(is_ours).collect();
    Printed { stderr, stdout, output }
}

/// All panics of the programs.
const MESSAGES: [&str; 10] = [
    "in a thread",
    "in a task",
    "caught by the child",
    "caught by the run",
    "in a child",
    "in a run",
    "in a drop",
    "after all",
    "the log is full",
    "before the abort",
];

/// Returns the location of the panic with this message in this file.
fn location(message: &str) -> String {
    let call = format!("panic!(\"{message}\")");
    let mut lines = include_str!("panics.rs").lines().enumerate();
    let (number, column) =
        lines.find_map(|(number, line)| Some((number + 1, line.find(&call)? + 1))).unwrap();
    format!("{}:{number}:{column}", file!())
}

fn panicked(child: &str, message: &str) -> String {
    let location = location(message);
    format!(
        "ERROR verger::panic: panicked child=app/{child} incarnation=1 \
         location={location:?} panic={message:?}"
    )
}

const OUTSIDE: [&str; 3] = ["in a thread", "in a task", "after all"];

#[test]
fn with_the_hook_the_log_has_the_panics_of_children_and_stderr_those_of_others() {
    let Printed { stderr, stdout, output } = printed("with the hook", "0");
    assert!(output.status.success(), "{stderr:?}");
    assert_eq!(stderr, OUTSIDE);
    let at = location("in a child");
    let reason = format!("panicked at {at}: in a child");
    assert_eq!(
        stdout,
        [
            panicked("child", "caught by the child"),
            panicked("child", "in a child"),
            format!(
                "ERROR verger::restart: giving up child=app/child incarnation=1 \
                 cause={reason:?} lived=0ns failing=0ns restarts=0 limit=\"0 in 1m for all children\" source=supervisor \
                 then=escalate hint=\"if the program can do without it, give it on_exhausted(OnExhausted::Pause(..))\""
            ),
            panicked("dropped", "in a drop"),
            format!("RESULT `app` gave up on `app/child`: {reason}"),
        ]
    );
}

#[test]
fn with_the_hook_a_run_that_panics_is_one_line_with_the_location_and_the_backtrace() {
    let failed = |in_a_row| {
        let cause = format!("panicked at {}: in a run", location("in a run"));
        format!(
            "WARN verger::periodic: a run has failed child=app/job incarnation=1 cause={cause:?} \
             failed_in_a_row={in_a_row}"
        )
    };
    let lines = |backtrace| {
        let Printed { stderr, output, .. } = printed("in runs", backtrace);
        assert!(output.status.success(), "{stderr:?}");
        assert_eq!(stderr, [""; 0]);
        let log = String::from_utf8(output.stdout).unwrap();
        let is_start = |line: &&str| line.starts_with("ERROR") || line.starts_with("WARN");
        let lines = log.lines().map(str::trim).filter(is_start);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("0"), [panicked("job", "caught by the run"), failed(1), failed(2)]);
    let lines = lines("1");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].starts_with(&(failed(1) + " backtrace=")), "{lines:?}");
}

#[test]
fn with_the_hook_a_backtrace_goes_to_the_log_if_the_environment_enables_it() {
    let Printed { stdout, output, .. } = printed("with the hook", "1");
    let start = panicked("child", "in a child") + " backtrace=";
    let frames = "panics::panic_everywhere";
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.iter().any(|line| line.starts_with(&start)), "{stdout:?}");
    assert!(log.contains(frames), "{log}");
}

#[test]
fn without_the_hook_every_panic_is_on_stderr_and_no_location_is_known() {
    let Printed { stderr, stdout, .. } = printed("without the hook", "0");
    let all =
        ["in a thread", "in a task", "caught by the child", "in a child", "in a drop", "after all"];
    assert_eq!(stderr, all);
    assert_eq!(stdout.len(), 2, "{stdout:?}");
    assert_eq!(stdout[1], "RESULT `app` gave up on `app/child`: panicked: in a child");
}

#[test]
fn without_a_subscriber_the_hook_leaves_every_panic_on_stderr() {
    let Printed { stderr, stdout, .. } = printed("without a subscriber", "0");
    assert_eq!(stderr.len(), 6, "{stderr:?}");
    assert_eq!(stdout, ["RESULT `app` gave up on `app/child`: panicked: in a child"]);
}

#[test]
fn a_subscriber_that_panics_at_the_line_does_not_abort_the_process() {
    let Printed { stderr, output, .. } = printed("with a subscriber that panics", "0");
    assert!(output.status.success(), "{stderr:?}");
    let switched_off = "verger: the tracing subscriber has panicked; no further lines are logged";
    assert_eq!(
        stderr,
        ["in a thread", "in a task", "the log is full", switched_off, "in a drop", "after all"]
    );
}

#[test]
fn a_panic_during_a_panic_is_printed_before_the_process_aborts() {
    let Printed { stderr, output, .. } = printed("aborting", "0");
    assert!(!output.status.success());
    let line = |message| format!("verger: panicked at {}: {message}", location(message));
    assert_eq!(stderr, [line("before the abort"), line("in a drop")]);
}
