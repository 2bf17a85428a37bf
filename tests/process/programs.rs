//! Whole programs: their reaction to signals, their output and their exit codes.
//!
//! The programs are in this file, in `host` and in `signals`. The test binary runs itself, with an environment
//! variable that selects one. The tests read its standard error; the harness writes to its standard
//! output.

#![cfg(all(unix, feature = "signal"))]

use std::fmt::Debug;
use std::future::{Future, pending, poll_fn};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio, Termination};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{self, Runtime};
use tokio::sync::Notify;
use verger::Application;
use verger::app::OsSignal;
#[cfg(feature = "process")]
use verger::app::{Stage, StopStages};
use verger::policy::AutoShutdown;
use verger::{
    Context, Exit, Readiness, RestartType, RunError, Shutdown, Supervisor, SupervisorBuilder,
    worker,
};

#[cfg(target_os = "linux")]
use crate::host;
use crate::{application, entry, signals};

const CHOICE: &str = "VERGER_TEST_PROGRAM";

// --- The programs --------------------------------------------------------------------------------

/// The entry point of a program. As an ordinary test, it finds no program selected and returns.
#[test]
fn program() {
    let Some((name, threads)) = chosen() else { return };
    entry::run(|| match name.as_str() {
        #[cfg(target_os = "linux")]
        "memory" => runtime(threads).block_on(host::memory(false)),
        #[cfg(target_os = "linux")]
        "stubborn memory" => runtime(threads).block_on(host::memory(true)),
        #[cfg(target_os = "linux")]
        "leaking memory" => runtime(threads).block_on(host::leaking_memory()),
        #[cfg(all(target_os = "linux", feature = "systemd"))]
        "systemd" => runtime(threads).block_on(host::systemd()),
        #[cfg(feature = "config-file")]
        "reloading" => runtime(threads).block_on(crate::reload::reloading()),
        "polite" => runtime(threads).block_on(polite()),
        "logging" => runtime(threads).block_on(logging()),
        "blocking" => runtime(threads).block_on(blocking(true)),
        "blocked" => runtime(threads).block_on(blocking(false)),
        "finishing" => runtime(threads).block_on(finishing()),
        "failing" => runtime(threads).block_on(failing().run_to_exit_code()),
        "failing, with signals" => runtime(threads)
            .block_on(failing().with_graceful_shutdown(listening()).run_to_exit_code()),
        #[cfg(feature = "process")]
        "with a process" => runtime(threads).block_on(with_a_process(true)),
        #[cfg(feature = "process")]
        "blocked with a process" => runtime(threads).block_on(with_a_process(false)),
        "blocked by a poll" => runtime(threads).block_on(blocked_by_a_poll()),
        #[cfg(feature = "config")]
        "blocked configuration" => runtime(threads).block_on(blocked_configuration()),
        "blocked beside another child" => runtime(threads).block_on(blocked_beside(false)),
        "blocked for a while" => runtime(threads).block_on(blocked_beside(true)),
        #[cfg(feature = "health")]
        "probes" => runtime(threads).block_on(probed()),
        "leaking" => runtime(threads).block_on(leaking()),
        "failing and leaking" => runtime(threads).block_on(failing_and_leaking()),
        "main that fails" => runtime(threads).block_on(main_that_fails()).report(),
        "main that cannot be built" => runtime(threads).block_on(main_without_tree()).report(),
        "main that ends well" => runtime(threads).block_on(main_that_ends_well()).report(),
        other => {
            application::program(other, threads).unwrap_or_else(|| signals::program(other, threads))
        }
    })
}

fn chosen() -> Option<(String, usize)> {
    let choice = std::env::var(CHOICE).ok()?;
    let (name, threads) = choice.split_once('/')?;
    Some((name.to_owned(), threads.parse().ok()?))
}

/// Returns a runtime with one thread or several.
pub(crate) fn runtime(threads: usize) -> Runtime {
    let mut builder = if threads == 1 {
        runtime::Builder::new_current_thread()
    } else {
        runtime::Builder::new_multi_thread()
    };
    builder.worker_threads(threads).enable_all().build().unwrap()
}

/// Notified once signals are handled.
static LISTENING: Notify = Notify::const_new();

/// Waits for a signal, and prints a line once signals are handled.
fn listening() -> impl Future<Output = OsSignal> + Send + 'static {
    let mut signals = Box::pin(verger::signals());
    let mut printed = false;
    poll_fn(move |cx| {
        let poll = signals.as_mut().poll(cx);
        if poll == Poll::Pending && !std::mem::replace(&mut printed, true) {
            eprintln!("listening");
            LISTENING.notify_one();
        }
        poll
    })
}

pub(crate) fn app() -> SupervisorBuilder {
    Supervisor::builder("app").leak_timeout(Duration::from_millis(1))
}

/// Two children that print what they do.
async fn polite() -> ExitCode {
    let child = |name| {
        worker(name, async |ctx: Context| -> Exit {
            let path = ctx.path();
            eprintln!("{} up", path.name());
            ctx.cancelled().await;
            eprintln!("{} stopping", path.name());
            tokio::task::yield_now().await;
            eprintln!("{} stopped", path.name());
            Ok(())
        })
    };
    let tree = app().child(child("a")).child(child("b")).build().unwrap();
    tree.with_graceful_shutdown(listening()).run_to_exit_code().await
}

/// Logs to stderr how it shuts down.
async fn logging() -> ExitCode {
    log_to_stderr();
    app().build().unwrap().with_graceful_shutdown(listening()).run_to_exit_code().await
}

pub(crate) fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_env_filter("verger::shutdown=info")
        .with_writer(std::io::stderr)
        .without_time()
        .with_ansi(false)
        .init();
}

/// Blocks a thread for ever, and prints a line after the preceding signal has been handled
/// completely.
fn block() {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(300));
    eprintln!("blocking");
    let _ = never.recv();
}

/// A child that blocks every thread of the runtime, at its cancellation or at once.
async fn blocking(when_asked: bool) -> ExitCode {
    let child = worker("a", move |ctx: Context| async move {
        if when_asked {
            eprintln!("up");
            ctx.cancelled().await;
        } else {
            LISTENING.notified().await;
        }
        // More tasks than threads, because a thread keeps its next task to itself.
        for _ in 0..16 {
            tokio::spawn(async { block() });
        }
        pending::<()>().await;
    });
    let tree = app().child(child).build().unwrap();
    tree.with_graceful_shutdown(listening()).run_to_exit_code().await
}

/// An OS process, which is stopped after a child that doesn't end in time.
#[cfg(feature = "process")]
async fn with_a_process(awaits: bool) -> ExitCode {
    let script = verger::command("script", || {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", "echo running >&2; sleep 20; echo survived >&2"]);
        sh
    });
    let late = worker("late", move |ctx: Context| async move {
        ctx.cancelled().await;
        eprintln!("stopping");
        if !awaits {
            block();
        }
        pending::<()>().await;
    });
    let script = script.stderr(verger::process::Output::Inherit);
    let tree = app().child(script).child(late.shutdown(Duration::from_secs(50)));
    if awaits {
        tree.build().unwrap().with_graceful_shutdown(listening()).run_to_exit_code().await
    } else {
        let stages = StopStages::new([Stage::Polite(Duration::from_millis(50))]);
        Application::new(tree).stages(stages).exit_grace(Duration::from_millis(50)).run().await
    }
}

/// A child whose first poll blocks the thread.
async fn blocked_by_a_poll() -> ExitCode {
    let child = worker("a", async |_ctx| -> Exit {
        let (_keep, never) = mpsc::channel::<()>();
        // A poll is called blocked after a second.
        let _ = never.recv_timeout(Duration::from_millis(1200));
        eprintln!("blocked for a second");
        let _ = never.recv();
        Ok(())
    });
    Application::new(app().child(child)).run().await
}

/// Reads its configuration for ever.
#[cfg(feature = "config")]
async fn blocked_configuration() -> ExitCode {
    let app = Application::new(app()).config(|| {
        eprintln!("reading");
        let (_keep, never) = mpsc::channel::<()>();
        let _ = never.recv();
        verger::config::Config::new()
    });
    app.exit_grace(Duration::from_millis(50)).run().await
}

/// A log that tells when the leaked child `app/blocks` has ended.
struct TellsOfEnd(mpsc::Sender<()>);

impl std::io::Write for TellsOfEnd {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if text.contains("leaked child has ended") && text.contains("app/blocks") {
            let _ = self.0.send(());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A child that blocks its thread when it is cancelled, after it has woken another child there. `unblocks`: until the
/// tree has ended.
async fn blocked_beside(unblocks: bool) -> ExitCode {
    let woken = std::sync::Arc::new(Notify::new());
    let waits = std::sync::Arc::clone(&woken);
    let innocent = worker("innocent", move |ctx: Context| {
        let waits = std::sync::Arc::clone(&waits);
        async move {
            eprintln!("up");
            waits.notified().await;
            ctx.cancelled().await;
        }
    });
    let (unblock, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(Some(std::sync::Mutex::new(blocked)));
    let blocks = worker("blocks", move |ctx: Context| {
        let (woken, blocked) = (std::sync::Arc::clone(&woken), blocked.lock().unwrap().take());
        async move {
            eprintln!("up");
            ctx.cancelled().await;
            // In the slot for the next task of this thread, which no other thread takes.
            woken.notify_one();
            let _ = blocked.unwrap().lock().unwrap().recv();
        }
    });
    let grace = Duration::from_millis(100);
    let tree = app().child(innocent.shutdown(grace)).child(blocks.shutdown(grace));
    let (tells, ended) = mpsc::channel();
    if unblocks {
        let log = tracing_subscriber::fmt().with_env_filter("verger::shutdown=info");
        log.with_writer(std::sync::Mutex::new(TellsOfEnd(tells))).init();
    }
    let unblock = verger::app::hook("unblock", move |_| async move {
        if unblocks {
            drop(unblock);
            tokio::task::block_in_place(|| ended.recv()).unwrap();
        } else {
            std::mem::forget(unblock);
        }
    });
    let app = Application::new(tree).after_stop(unblock);
    app.exit_grace(Duration::from_millis(500)).run().await
}

/// Prints the address of its probes.
#[cfg(feature = "health")]
async fn probed() -> ExitCode {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    eprintln!("{}", listener.local_addr().unwrap());
    Application::new(app()).probes_on(listener).run().await
}

/// A child that blocks a thread of its own and survives its abort.
async fn leaking() -> ExitCode {
    let child = worker("a", async |_ctx| -> Exit {
        LISTENING.notified().await;
        tokio::task::block_in_place(block);
        Ok(())
    });
    let tree = app().child(child.shutdown(Shutdown::BrutalKill)).build().unwrap();
    tree.with_graceful_shutdown(listening()).run_to_exit_code().await
}

/// The same beside a child that fails beyond its limit.
async fn failing_and_leaking() -> ExitCode {
    let blocks = worker("a", async |ctx: Context| {
        ctx.ready();
        tokio::task::block_in_place(block);
    });
    let blocks = blocks.readiness(Readiness::Signal).shutdown(Shutdown::BrutalKill);
    let fails = worker("b", async |_ctx| -> Exit { Err("no")? });
    let tree = app().restarts(0, Duration::from_secs(60)).child(blocks).child(fails);
    tree.build().unwrap().run_to_exit_code().await
}

async fn finishing() -> ExitCode {
    let job = worker("job", async |_ctx| -> Exit { Ok(()) });
    let tree = app().auto_shutdown(AutoShutdown::AnySignificant);
    let tree = tree.child(job.restart(RestartType::Transient).significant());
    tree.build().unwrap().run_to_exit_code().await
}

fn failing() -> Supervisor {
    let db = worker("db", async |_ctx| -> Exit {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        Err(anyhow::Error::from(refused).context("no database"))?
    });
    let mid = Supervisor::builder("mid").restarts(0, Duration::from_secs(60)).child(db);
    app().restarts(0, Duration::from_secs(60)).child(mid).build().unwrap()
}

async fn main_that_fails() -> Result<(), RunError> {
    failing().with_graceful_shutdown(listening()).await
}

async fn main_without_tree() -> Result<(), RunError> {
    let idle = || worker("db", async |ctx: Context| ctx.cancelled().await);
    app().child(idle()).child(idle()).build()?.run().await
}

async fn main_that_ends_well() -> Result<(), RunError> {
    let child = worker("a", async |ctx: Context| {
        ctx.run_until_cancelled(ctx.parent().stop("done")).await;
    });
    app().child(child).build()?.await
}

// --- The tests -----------------------------------------------------------------------------------

/// How long a program may write no line. A stop in its stages takes half of that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the command that starts this binary by a launcher.
///
/// SIGHUP has its default action, also where the tests themselves run under `nohup`.
fn launched_by(launcher: &[&str]) -> Command {
    let default: &[&str] =
        if cfg!(target_os = "linux") { &["env", "--default-signal=HUP"] } else { &["env"] };
    let words = [default, launcher].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(std::env::current_exe().unwrap());
    command
}

/// A running program.
pub(crate) struct Program {
    process: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(name: &str, threads: usize) -> Self {
        Self::start_by(launched_by(&[]), name, threads)
    }

    /// Starts with a command that takes the arguments of the test binary.
    pub(crate) fn start_by(mut command: Command, name: &str, threads: usize) -> Self {
        let mut process = command
            .args(["--exact", "programs::program", "--nocapture"])
            .env(CHOICE, format!("{name}/{threads}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Returns the next line, or `None` after the last one. A program that writes nothing fails the test.
    fn next(&mut self, awaited: &dyn Debug, seen: &[String]) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{awaited:?} did not come within {PATIENCE:?}: {seen:?}")
            }
        }
    }

    /// Reads until this line has been printed so often. Returns all lines that were read.
    pub(crate) fn read_until(&mut self, line: &str, times: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.iter().filter(|it| *it == line).count() < times {
            let next = self.next(&line, &lines);
            lines.push(next.unwrap_or_else(|| panic!("{line:?} did not come: {lines:?}")));
        }
        lines
    }

    /// Reads until a line begins so. Returns all lines that were read.
    pub(crate) fn read_until_start(&mut self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.starts_with(start)) {
            let next = self.next(&start, &lines);
            lines.push(next.unwrap_or_else(|| panic!("{start:?} did not come: {lines:?}")));
        }
        lines
    }

    /// Reads until all these lines have been printed, in any order.
    pub(crate) fn wait_for(&mut self, expected: &[&str]) {
        let mut left = expected.to_vec();
        let mut seen = Vec::new();
        while !left.is_empty() {
            let line = self.next(&left, &seen);
            let line = line.unwrap_or_else(|| panic!("{left:?} did not come: {seen:?}"));
            if let Some(at) = left.iter().position(|&wanted| wanted == line) {
                left.remove(at);
            }
            seen.push(line);
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Sends these signals, one immediately after the other.
    pub(crate) fn signals(&self, names: &[&str]) {
        let pid = self.process.id();
        let kills: Vec<_> = names.iter().map(|name| format!("kill -s {name} {pid}")).collect();
        assert!(Command::new("sh").args(["-c", &kills.join(" && ")]).status().unwrap().success());
    }

    /// Sends a signal until the program has ended, because one soon after the first is taken for the same. Returns
    /// what [`end`](Self::end) does.
    pub(crate) fn end_by(mut self, name: &str) -> (Option<i32>, Vec<String>) {
        while self.process.try_wait().unwrap().is_none() {
            self.signal(name);
        }
        self.end()
    }

    /// Returns the exit code and the remaining lines.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>) {
        let mut rest = Vec::new();
        while let Some(line) = self.next(&"the end of the program", &rest) {
            rest.push(line);
        }
        (self.process.wait().unwrap().code(), rest)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn seed4_40_a_signal_stops_the_tree_in_order_and_the_program_exits_with_0() {
    for signal in ["HUP", "INT", "TERM"] {
        for threads in [1, 2] {
            let mut program = Program::start("polite", threads);
            program.wait_for(&["listening", "a up", "b up"]);
            program.signal(signal);
            let lines = ["b stopping", "b stopped", "a stopping", "a stopped"].map(str::to_owned);
            assert_eq!(program.end(), (Some(0), lines.to_vec()), "{signal}, {threads}");
        }
    }
}

#[test]
fn a_graceful_shutdown_logs_the_signal_that_caused_it() {
    for (signal, cause) in [("INT", "SIGINT"), ("TERM", "SIGTERM")] {
        let mut program = Program::start("logging", 1);
        program.wait_for(&["listening"]);
        program.signal(signal);
        let logged = vec![
            format!(
                " INFO verger::shutdown: stage begins cause={cause:?} stage=\"polite\" length=20s"
            ),
            format!(" INFO verger::shutdown: shutting down child=app cause={cause:?}"),
            " INFO verger::shutdown: stopped child=app".to_owned(),
        ];
        assert_eq!(program.end(), (Some(0), logged));
    }
}

#[test]
fn seed4_49_a_second_signal_exits_at_once_even_if_every_thread_is_blocked() {
    for (first, second, code) in
        [("INT", "INT", 130), ("TERM", "INT", 130), ("INT", "TERM", 143), ("TERM", "TERM", 143)]
    {
        for threads in [1, 2] {
            let mut program = Program::start("blocking", threads);
            program.wait_for(&["listening", "up"]);
            program.signal(first);
            program.wait_for(&["blocking", "blocking"][..threads]);
            let late = format!("verger: second SIG{second}: ending at once, still running: app/a");
            assert_eq!(
                program.end_by(second),
                (Some(code), vec![late]),
                "{first}, {second}, {threads}"
            );
        }
    }
}

/// The process has the standard error of the program, so `end` waits for it.
#[cfg(feature = "process")]
#[test]
fn no_os_process_outlives_a_program_that_ends_at_once() {
    let mut program = Program::start("with a process", 2);
    program.wait_for(&["listening", "running"]);
    program.signal("TERM");
    program.wait_for(&["stopping"]);
    let late = "verger: second SIGINT: ending at once, still running: app/late".to_owned();
    assert_eq!(program.end_by("INT"), (Some(130), vec![late]));

    let mut program = Program::start("blocked with a process", 1);
    program.wait_for(&["running"]);
    program.signal("TERM");
    program.wait_for(&["stopping", "blocking"]);
    let blocked =
        "verger: ending the process with code 3: a thread is blocked: app/late".to_owned();
    assert_eq!(program.end(), (Some(3), vec![blocked]));
}

#[test]
fn a_program_that_was_blocked_before_the_first_signal_is_ended_by_the_second() {
    let mut program = Program::start("blocked", 1);
    program.wait_for(&["listening", "blocking"]);
    program.signal("INT");
    // The stop hasn't reached the tree, and no child blocks the thread, so only the root is named.
    let late = "verger: second SIGTERM: ending at once, still running: app".to_owned();
    assert_eq!(program.end_by("TERM"), (Some(143), vec![late]));
}

#[test]
fn a_child_that_has_blocked_the_only_thread_before_the_first_signal_is_named() {
    let mut program = Program::start("blocked by a poll", 1);
    program.wait_for(&["blocked for a second"]);
    program.signal("TERM");
    let late = "verger: second SIGTERM: ending at once, still running: app/a".to_owned();
    assert_eq!(program.end_by("TERM"), (Some(143), vec![late]));
}

#[test]
fn a_signal_while_the_configuration_is_read_stops_the_program_in_order() {
    // SIGHUP would reload the configuration.
    for signal in ["INT", "TERM"] {
        let mut program = Program::start("blocked configuration", 1);
        program.wait_for(&["reading"]);
        program.signal(signal);
        let (code, lines) = program.end();
        // The thread that reads doesn't end, so the process doesn't wait for it.
        let last = "verger: ending the process with code 0: it doesn't end by itself".to_owned();
        assert_eq!((code, lines), (Some(0), vec![last]), "{signal}");
    }
}

#[test]
fn a_different_signal_soon_after_the_first_is_taken_for_the_same() {
    for signals in [["INT", "TERM"], ["TERM", "INT"], ["HUP", "TERM"]] {
        let mut program = Program::start("polite", 1);
        program.wait_for(&["listening", "a up", "b up"]);
        program.signals(&signals);
        let lines = ["b stopping", "b stopped", "a stopping", "a stopped"].map(str::to_owned);
        assert_eq!(program.end(), (Some(0), lines.to_vec()), "{signals:?}");
    }
}

/// Returns what the program logs as the cause of its stop.
fn cause(program: Program) -> String {
    let (code, lines) = program.end();
    assert_eq!(code, Some(0), "{lines:?}");
    let mut causes = lines.iter().filter_map(|line| line.split_once("shutting down"));
    causes.next().unwrap().1.trim().to_owned()
}

#[test]
fn a_closed_terminal_stops_a_program_unless_it_was_started_to_outlive_it() {
    for (launcher, signal) in [("env", "SIGHUP"), ("setsid", "SIGHUP"), ("nohup", "SIGTERM")] {
        let mut command = launched_by(&[launcher]);
        command.stdin(Stdio::null());
        let mut program = Program::start_by(command, "logging", 1);
        program.wait_for(&["listening"]);
        // Of two that are pending, either may be seen first.
        let ignored = signal == "SIGTERM";
        program.signals(if ignored { &["HUP", "TERM"] } else { &["HUP"] });
        assert_eq!(cause(program), format!("child=app cause=\"{signal}\""), "{launcher}");
    }
}

#[cfg(feature = "process")]
#[test]
fn no_os_process_outlives_a_program_whose_terminal_is_closed() {
    let mut program = Program::start("with a process", 2);
    program.wait_for(&["listening", "running"]);
    program.signal("HUP");
    program.wait_for(&["stopping"]);
    let late = "verger: second SIGHUP: ending at once, still running: app/late".to_owned();
    assert_eq!(program.end_by("HUP"), (Some(129), vec![late]));
}

#[test]
fn a_child_that_only_waits_for_a_blocked_thread_has_not_leaked() {
    let mut program = Program::start("blocked beside another child", 2);
    program.wait_for(&["up", "up"]);
    program.signal("TERM");
    let error = "Error: stopped, but killed at the end of their grace: `app/innocent`; still running after they were \
                 aborted: `app/blocks`";
    let last = "verger: ending the process with code 3: a thread is blocked: app/blocks";
    assert_eq!(program.end(), (Some(3), [error, last].map(str::to_owned).to_vec()));
}

#[test]
fn a_leaked_child_that_has_exited_since_does_not_run_any_more_when_the_program_ends() {
    let mut program = Program::start("blocked for a while", 2);
    program.wait_for(&["up", "up"]);
    program.signal("TERM");
    let error =
        "Error: stopped, but killed at the end of their grace: `app/innocent`, `app/blocks`";
    assert_eq!(program.end(), (Some(3), vec![error.to_owned()]));
}

#[cfg(feature = "health")]
#[test]
fn idle_connections_keep_no_probe_out() {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n 64 && exec "$0" "$@""#]);
    command.arg(std::env::current_exe().unwrap());
    let program = Program::start_by(command, "probes", 1);
    let address = program.lines.recv().unwrap();
    let idle: Vec<_> = (0..120).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut probe = TcpStream::connect(&address).unwrap();
    probe.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    probe.write_all(b"GET /livez HTTP/1.1\r\nhost: app\r\n\r\n").unwrap();
    let mut status = [0; 12];
    probe.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    drop(idle);
    program.signal("TERM");
    assert_eq!(program.end(), (Some(0), vec![]));
}

#[test]
fn an_immediately_repeated_signal_counts_once() {
    for signal in ["INT", "TERM"] {
        let mut program = Program::start("polite", 1);
        program.wait_for(&["listening", "a up", "b up"]);
        program.signal(signal);
        program.signal(signal);
        let lines = ["b stopping", "b stopped", "a stopping", "a stopped"].map(str::to_owned);
        assert_eq!(program.end(), (Some(0), lines.to_vec()), "{signal}");
    }
}

/// Returns the exit code and the output of a program that ends by itself.
fn outcome(name: &str) -> (Option<i32>, Vec<String>) {
    Program::start(name, 1).end()
}

const GAVE_UP: &str = "Error: `app` gave up on `app/mid`: escalated: child app/mid/db: failed: \
                       no database: refused";

#[test]
fn kin_143_the_exit_code_reflects_how_the_tree_ended() {
    assert_eq!(outcome("finishing"), (Some(0), vec![]));
    assert_eq!(outcome("failing"), (Some(1), vec![GAVE_UP.to_owned()]));
    let lines = vec!["listening".to_owned(), GAVE_UP.to_owned()];
    assert_eq!(outcome("failing, with signals"), (Some(1), lines));
}

#[test]
fn a_program_with_a_leak_exits_and_names_the_leak() {
    let mut program = Program::start("leaking", 2);
    program.wait_for(&["listening", "blocking"]);
    program.signal("TERM");
    let leaked = "Error: stopped, but still running after they were aborted: `app/a`";
    let last = "verger: ending the process with code 3: a thread is blocked: app/a";
    assert_eq!(program.end(), (Some(3), [leaked, last].map(str::to_owned).to_vec()));

    let (code, printed) = Program::start("failing and leaking", 2).end();
    assert_eq!(code, Some(1));
    let error = "Error: `app` gave up on `app/b`: failed: no; still running after they were aborted: `app/a`";
    assert!(printed.contains(&error.to_owned()), "{printed:?}");
}

#[test]
fn a_main_that_returns_the_error_prints_the_whole_chain() {
    let lines = vec!["listening".to_owned(), GAVE_UP.to_owned()];
    assert_eq!(outcome("main that fails"), (Some(1), lines));
    let twice = "Error: `app` has two children named `db`; give one of them another name";
    assert_eq!(outcome("main that cannot be built"), (Some(1), vec![twice.to_owned()]));
    assert_eq!(outcome("main that ends well"), (Some(0), vec![]));
}
