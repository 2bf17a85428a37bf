//! The examples that show one subject each, broken as their comments say.
//!
//! Each example is a module here. The test binary runs itself, with an environment variable that selects one. Its lines
//! are compared without the times in front of log lines.

#![cfg(all(unix, feature = "config-file", feature = "lease", feature = "signal"))]

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio, Termination};

use crate::entry;

#[path = "../../examples/backon_iterator.rs"]
mod backon_iterator;
#[path = "../../examples/config_reload.rs"]
mod config_reload;
#[path = "../../examples/dynamic.rs"]
mod dynamic;
#[path = "../../examples/events.rs"]
mod events;
#[cfg(target_os = "linux")]
#[path = "../../examples/memory.rs"]
mod memory;
#[path = "../../examples/shutdown_order.rs"]
mod shutdown_order;
#[path = "../../examples/singleton.rs"]
mod singleton;
#[path = "../../examples/strategies.rs"]
mod strategies;

const CHOICE: &str = "VERGER_TEST_SINGLE_EXAMPLE";

/// The entry point of an example. As an ordinary test, it finds no example selected and returns.
#[test]
fn example() {
    let Ok(name) = std::env::var(CHOICE) else { return };
    entry::run(|| match name.as_str() {
        "backon_iterator" => backon_iterator::main().report(),
        "config_reload" => config_reload::main().report(),
        "dynamic" => dynamic::main().report(),
        "events" => events::main().report(),
        #[cfg(target_os = "linux")]
        "memory" => memory::main().report(),
        "shutdown_order" => shutdown_order::main().report(),
        "singleton" => singleton::main().report(),
        "strategies" => strategies::main().report(),
        other => panic!("there is no example {other:?}"),
    })
}

/// An example that runs, and its lines. It is killed when this is dropped.
struct Example {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(name: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // With one thread, the harness would write its own text before the first line.
        let test = "single_examples::example";
        command.args(["--exact", test, "--nocapture", "--test-threads", "2"]);
        command.env(CHOICE, name).envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut example = Self { process, lines };
        assert_eq!(example.next().as_deref(), Some(""));
        assert_eq!(example.next().as_deref(), Some("running 1 test"));
        example
    }

    /// Returns the next line, without the time of a log line.
    fn next(&mut self) -> Option<String> {
        let line = self.lines.next()?.unwrap();
        let is_time = |word: &str| word.starts_with("20") && word.ends_with('Z');
        let without = line.split_once(' ').filter(|(word, _)| is_time(word));
        Some(without.map_or(&*line, |(_, rest)| rest.trim_start()).to_owned())
    }

    /// Asserts the next lines. A `*` stands for any text.
    #[track_caller]
    fn expect(&mut self, expected: &[&str]) {
        for pattern in expected {
            let line = self.next().unwrap_or_else(|| panic!("it has ended instead of {pattern:?}"));
            assert!(matches(&line, pattern), "{pattern:?} was expected:\n{line}");
        }
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Returns the exit code and the remaining lines.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let rest = std::iter::from_fn(|| self.next()).collect();
        (self.process.wait().unwrap().code(), rest)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn matches(line: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => line == pattern,
        Some((start, pattern)) => line.strip_prefix(start).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| matches(&rest[at..], pattern))
        }),
    }
}

/// A directory of a test, removed when this is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("{test}-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs an example that ends by itself and succeeds, and returns its lines.
fn lines(name: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let (code, lines) = Example::start(name, variables).end();
    assert_eq!(code, Some(0), "{name}: {lines:#?}");
    lines
}

/// Returns the lines that begin with this text. Lines of different children have no order.
fn of<'a>(lines: &'a [String], start: &str) -> Vec<&'a str> {
    lines.iter().map(|line| &**line).filter(|line| line.starts_with(start)).collect()
}

#[test]
fn strategies_show_what_stops_and_starts_with_a_child_that_is_killed() {
    let with_b = [
        "supervisor    killed    stops     starts",
        "one_for_one   b         -         b",
        "one_for_all   b         c a       a b c",
        "rest_for_one  b         c         b c",
        "dynamic       b#2       -         b#2",
    ];
    assert_eq!(lines("strategies", &[]), with_b);
    let with_a = [
        "supervisor    killed    stops     starts",
        "one_for_one   a         -         a",
        "one_for_all   a         c b       a b c",
        "rest_for_one  a         c b       a b c",
        "dynamic       a#1       -         a#1",
    ];
    assert_eq!(lines("strategies", &[("BREAK", "a")]), with_a);
}

/// How `shutdown_order` begins to stop at a SIGINT, until the child that has no grace of its own is waited for.
const STOP_BEGINS: [&str; 7] = [
    "INFO verger::shutdown: stage begins cause=\"SIGINT\" stage=\"drain\" length=500ms",
    "drain: SIGINT",
    "INFO verger::shutdown: stage begins cause=\"SIGINT\" stage=\"polite\" length=2.5s",
    "INFO verger::shutdown: shutting down child=app cause=\"SIGINT\"",
    "api: finishes its requests, because of SIGINT",
    "api: done",
    "mail: one more minute",
];

/// Starts `shutdown_order`, and waits until it has begun to stop.
fn stopping() -> Example {
    let mut example = Example::start("shutdown_order", &[]);
    let bound = "INFO verger::shutdown: time for a stop at_most=6s stages=\"drain 500ms, polite 2.5s, \
                 closing 1.5s, abort 1s\" graces=300ms";
    example.expect(&[bound, "started; press Ctrl-C"]);
    example.signal("INT");
    example.expect(&STOP_BEGINS);
    example.expect(&["WARN verger::shutdown: killed child=app/mail incarnation=1 took=*ms"]);
    example
}

#[test]
fn shutdown_order_stops_each_child_in_its_turn_and_aborts_the_one_that_ignores_its_cancellation() {
    let mut example = stopping();
    example.expect(&[
        // On a busy machine, the tree may not answer in time which children these are.
        "WARN verger::shutdown: stage expired*stage=\"polite\"*",
        "INFO verger::shutdown: stage begins cause=\"SIGINT\" stage=\"closing\" length=1.5s",
        "db: closed",
        "log: flushed",
        "WARN verger::shutdown: stage expired*stage=\"closing\"*",
        "WARN verger::shutdown: killed child=app/export incarnation=1 took=*s",
        "INFO verger::shutdown: stopped child=app",
        "the last hook",
    ]);
    assert_eq!(example.end(), (Some(3), vec![]));
}

#[test]
fn shutdown_order_ends_at_once_at_a_second_signal() {
    let example = stopping();
    example.signal("INT");
    let last = "ERROR verger::shutdown: second SIGINT: ending at once still_running=\"app/export\"";
    assert_eq!(example.end(), (Some(130), vec![last.to_owned()]));
}

#[test]
fn dynamic_refuses_what_is_too_many_and_removes_what_fails_too_often() {
    let came = [
        "session#1 came",
        "session#2 came",
        "session#3 came",
        "number 4 is refused: `app/sessions` already has 3 children, which is its limit",
    ];
    let rest = [
        "session#1 deactivating",
        "session#1 stopped",
        "session#1 removed",
        "session#4 came",
        "session#2 errored: aborted",
        "session#2 restarting in 250ms (attempt 1)",
        "session#2 active",
        "session#3 errored: aborted",
        "session#3 restarting in 250ms (attempt 1)",
        "session#3 active",
        "session#3 errored: aborted",
        "session#3 restarting in 250ms (attempt 2)",
        "session#3 active",
        "session#3 errored: aborted",
        "session#3 given up: aborted",
        "session#3 stopped",
        "session#3 removed",
        "left: session#2, session#4",
    ];
    let expected = |refused| [&came[..], &[refused], &rest].concat();
    assert_eq!(lines("dynamic", &[]), expected("1 refused"));
    assert_eq!(lines("dynamic", &[("SESSIONS", "1000")]), expected("997 refused"));
}

#[test]
fn events_has_an_operator_that_keeps_the_order_and_resumes_the_vendor() {
    let lines = lines("events", &[]);
    let failed = "failed: order 13 has no customer";
    let of_writer = [
        &format!("event: app/writer errored: {failed}"),
        "event: app/writer restarting in 250ms (attempt 1)",
        "event: app/writer active",
    ];
    assert_eq!(of(&lines, "event: app/writer"), of_writer);
    let of_vendor = [
        "event: app/vendor errored: failed: no route to host",
        "event: app/vendor restarting in 250ms (attempt 1)",
        "event: app/vendor errored: failed: no route to host",
        "event: app/vendor given up: failed: no route to host",
        "event: app/vendor resume called by operator: the other address",
    ];
    assert_eq!(of(&lines, "event: app/vendor"), of_vendor);
    assert_eq!(of(&lines, "letter"), ["letter: poison for app/writer: order 13 is kept"]);
    assert_eq!(of(&lines, "writer: "), ["writer: order 12", "writer: order 14"]);
    let addresses = ["10.0.0.1", "10.0.0.1", "10.0.0.2"];
    assert_eq!(of(&lines, "vendor: "), addresses.map(|it| format!("vendor: connects to {it}")));
    let last = "operator: the order is kept, writer and vendor are up";
    assert_eq!(of(&lines, "operator"), [last]);
    assert_eq!(lines.len(), 15, "{lines:#?}");
}

#[test]
fn backon_iterator_waits_as_long_as_an_iterator_yields_and_gives_up_at_its_end() {
    let expected = [
        "backon-default: 100ms, 150.000006ms, 225.000009ms, given up",
        "backon-endless: 100ms, 150.000006ms, 225.000009ms, 337.500006ms, 400ms, 400ms, and so on",
        "primes: 2s, 3s, 5s, 7s, 11s, given up",
    ];
    assert_eq!(lines("backon_iterator", &[]), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_restarts_the_subtree_that_leaks_in_order_and_nothing_else() {
    let lines = lines("memory", &[]);
    assert_eq!(of(&lines, "api"), ["api #1: runs", "api #1: stopped"]);
    let pages = ["pages: begin", "pages: dropped", "pages: begin again; the memory is free"];
    assert_eq!(of(&lines, "pages"), pages);
    // The end may come before `index` has started again.
    assert_eq!(of(&lines, "index")[..2], ["index: opened", "index: saved"]);
    let at = |pattern: &str| lines.iter().position(|line| matches(line, pattern)).unwrap();
    let log = "WARN verger::memory: restarting because of the memory usage child=cache usage=\"* % of 64 MiB\"";
    assert!(at(log) < at("index: saved"), "{lines:#?}");
    assert!(at("index: saved") < at("pages: dropped"), "{lines:#?}");
}

#[test]
fn config_reload_applies_a_policy_and_a_setting_at_sighup_and_no_mistake() {
    let directory = Directory::new("config-reload");
    let file = directory.0.join("app.toml");
    let path = file.to_str().unwrap();
    let write = |delay: &str, batch: &str| {
        let backoff = format!("{{ curve = \"constant\", delay = \"{delay}\", jitter = \"none\" }}");
        let text =
            format!("[poll.restart]\nbackoff = {backoff}\n\n[writer.config]\nbatch = {batch}\n");
        std::fs::write(&file, text).unwrap();
    };
    write("200ms", "100");
    let mut example = Example::start("config_reload", &[("CONFIG_FILE", path)]);
    example.expect(&[&format!("edit {path}, then: kill -HUP *")]);
    let mut first = [example.next().unwrap(), example.next().unwrap()];
    first.sort();
    assert_eq!(first, ["poll: waits 200ms between its attempts", "writer #1: batches of 100"]);

    write("50ms", "500");
    example.signal("HUP");
    let mut changed: Vec<_> = (0..6).map(|_| example.next().unwrap()).collect();
    let of_children = ["poll: waits 50ms between its attempts", "writer #1: batches of 500"];
    changed.retain(|line| !of_children.contains(&&**line));
    let log = [
        "INFO verger::config: reloading trigger=\"SIGHUP\" forced=false".to_owned(),
        format!(
            "INFO verger::config: ~ app/poll  restart.backoff.delay  \"200ms\" → \"50ms\"  at the next failure  {path}:2"
        ),
        format!("INFO verger::config: ~ app/writer  config.batch  100 → 500  live  {path}:5"),
        "INFO verger::config: reloaded trigger=\"SIGHUP\" changes=2 unchanged=0".to_owned(),
    ];
    assert_eq!(changed, log);

    write("10ms", "\"many\"");
    example.signal("HUP");
    example.expect(&[
        "INFO verger::config: reloading trigger=\"SIGHUP\" forced=false",
        &format!("ERROR verger::config: {path}:5:9: invalid type: string \"many\", expected a whole number that isn't negative"),
        "  |",
        "5 | batch = \"many\"",
        "  |         ^^^^^^",
        "  key: writer.config.batch",
        "WARN verger::config: configuration not changed trigger=\"SIGHUP\"",
    ]);
    example.signal("TERM");
    assert_eq!(example.end(), (Some(0), vec![]));
}

#[test]
fn singleton_has_one_leader_also_when_the_old_one_wakes_up() {
    let directory = Directory::new("singleton");
    let start = || {
        let mut example = Example::start("singleton", &[("LEASES", directory.0.to_str().unwrap())]);
        example.expect(&["process *"]);
        example
    };
    let granted = |token| {
        let log = "INFO verger::lease: lease granted child=app/leader lease=\"verger-leader\"";
        [format!("{log} token={token}"), format!("token {token}: leads")]
    };
    let standby = "INFO verger::lease: on standby child=app/leader lease=\"verger-leader\" holder=\"*:app/leader\"";
    let mut first = start();
    first.expect(&granted(1).each_ref().map(|it| &**it));
    let mut second = start();
    second.expect(&[standby]);

    first.signal("STOP");
    second.expect(&granted(2).each_ref().map(|it| &**it));
    first.signal("CONT");
    let lost = "WARN verger::lease: lease lost child=app/leader lease=\"verger-leader\" cause=\"not renewed within 3s*\"";
    first.expect(&[lost, "token 1: stops", standby]);

    second.signal("TERM");
    assert_eq!(second.end(), (Some(0), vec!["token 2: stops".to_owned()]));
    first.expect(&granted(3).each_ref().map(|it| &**it));
    first.signal("TERM");
    assert_eq!(first.end(), (Some(0), vec!["token 3: stops".to_owned()]));
}

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn the_lease_of_singleton_keeps_the_rules_of_an_engine() {
    use std::sync::OnceLock;
    use std::time::Duration;

    use tokio::time::Instant;

    static BEGAN: OnceLock<Instant> = OnceLock::new();

    let directory = Directory::new("singleton-rules");
    let clock = || BEGAN.get_or_init(Instant::now).elapsed();
    let engine = singleton::Files { directory: directory.0.clone(), clock };
    let ttl = Duration::from_secs(1);
    verger::testing::assert_lease_rules(std::sync::Arc::new(engine), "checked", ttl).await;
}
