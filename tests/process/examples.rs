//! The examples with a server that breaks run to their end and print what they promise.
//!
//! Each example is a module here. The test binary runs itself, with an environment variable that
//! selects one. The examples check their own claims and fail otherwise.

#![cfg(all(feature = "macros", feature = "resilience", feature = "service"))]

#[cfg(all(unix, feature = "config-file", feature = "signal"))]
use std::io::{BufRead as _, BufReader};
#[cfg(all(unix, feature = "config-file", feature = "signal"))]
use std::process::Child;
use std::process::{Command, Output, Termination};

use crate::entry;

#[path = "../../examples/backoff_broker.rs"]
mod backoff_broker;
#[path = "../../examples/broker.rs"]
mod broker;
#[cfg(feature = "config")]
#[path = "../../examples/config_layers.rs"]
mod config_layers;
#[cfg(all(unix, feature = "config-file", feature = "signal"))]
#[path = "../../examples/config_watch.rs"]
mod config_watch;
#[path = "../../examples/database_pool.rs"]
mod database_pool;
#[path = "../../examples/failing_vendor.rs"]
mod failing_vendor;
#[path = "../../examples/flaky.rs"]
mod flaky;
#[cfg(all(target_os = "linux", feature = "process"))]
#[path = "../../examples/process.rs"]
mod process;
#[path = "../../examples/rate_limited.rs"]
mod rate_limited;
#[cfg(all(unix, feature = "config-file", feature = "signal"))]
#[allow(dead_code, reason = "`configuration` compares its timelines")]
#[path = "../../examples/documents/restart_policies.rs"]
mod restart_policies;
#[path = "../../examples/shared_pool.rs"]
mod shared_pool;
#[path = "../../examples/tcp_chat.rs"]
mod tcp_chat;

const CHOICE: &str = "VERGER_TEST_EXAMPLE";

/// The entry point of an example. As an ordinary test, it finds no example selected and returns.
#[test]
fn example() {
    let Ok(name) = std::env::var(CHOICE) else { return };
    entry::run(|| match name.as_str() {
        "backoff_broker" => backoff_broker::main().report(),
        "broker" => broker::main().report(),
        #[cfg(feature = "config")]
        "config_layers" => config_layers::main().report(),
        #[cfg(all(unix, feature = "config-file", feature = "signal"))]
        "config_watch" => config_watch::main().report(),
        "database_pool" => database_pool::main().report(),
        "failing_vendor" => failing_vendor::main().report(),
        "flaky" => flaky::main().report(),
        #[cfg(all(target_os = "linux", feature = "process"))]
        "process" => process::main().report(),
        "rate_limited" => rate_limited::main().report(),
        #[cfg(all(unix, feature = "config-file", feature = "signal"))]
        "restart_policies" => restart_policies::run().report(),
        "shared_pool" => shared_pool::main().report(),
        "tcp_chat" => tcp_chat::main().report(),
        other => panic!("there is no example {other:?}"),
    })
}

/// Returns the command that runs an example.
fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // With one thread, the harness would write its own text before the first line.
    command.args(["--exact", "examples::example", "--nocapture", "--test-threads", "2"]);
    command.env(CHOICE, name).env("OUTAGE_MS", "300");
    command
}

/// Runs an example, which has to succeed, and returns its lines.
fn lines(name: &str) -> Vec<String> {
    let Output { status, stdout, stderr } = command(name).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{name}: {status}\n{stdout}{stderr}");
    stdout.lines().map(str::to_owned).collect()
}

/// Asserts that these lines are printed, in any order, and returns all lines. A `*` matches any
/// text.
fn assert_printed(name: &str, expected: &[&str]) -> Vec<String> {
    let lines = lines(name);
    for pattern in expected {
        let came = lines.iter().any(|line| matches(line, pattern));
        assert!(came, "{pattern:?} did not come: {lines:#?}");
    }
    lines
}

/// Returns whether the line matches the pattern.
fn matches(line: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => line == pattern,
        Some((start, pattern)) => line.strip_prefix(start).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| matches(&rest[at..], pattern))
        }),
    }
}

/// Returns a function that reads what a program prints until a line matches a pattern.
#[cfg(all(unix, feature = "config-file", feature = "signal"))]
fn awaited(program: &mut Child) -> impl FnMut(&str) + use<> {
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    move |pattern| {
        let mut before = Vec::new();
        for line in &mut lines {
            let line = line.unwrap();
            if matches(&line, pattern) {
                return;
            }
            before.push(line);
        }
        panic!("{pattern:?} did not come: {before:#?}");
    }
}

#[cfg(all(unix, feature = "config-file", feature = "signal"))]
fn signal(program: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &program.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn backoff_broker_answers_every_request_of_the_outage() {
    let expected = [
        "outage: the broker is gone after * answers",
        "client: failed: lost the connection: *",
        "client: activation failed: can't connect: *",
        "client: down, attempt 3 in * ms",
        "outage: the broker is back; * answers are due",
        "client: asks the broker again: question * of *",
    ];
    let lines = assert_printed("backoff_broker", &expected);

    let pairs = lines.last().unwrap().split(' ').map(|pair| pair.split_once('=').unwrap());
    let (keys, values): (Vec<&str>, Vec<u32>) =
        pairs.map(|(key, value)| (key, value.parse::<u32>().unwrap())).unzip();
    assert_eq!(keys, ["asked", "answered", "lost", "outage_ms"]);
    assert_eq!((values[1], values[2]), (values[0], 0), "{lines:#?}");
    assert!(values[3] >= 300, "{lines:#?}");
}

#[test]
fn seed0_50_broker_retries_until_the_broker_is_back_and_loses_nothing() {
    let expected = [
        "the broker is down, and holds * messages",
        "consumer: attempt 1 in * ms",
        "consumer: activation failed: can't connect: *",
        "consumer: attempt 2 in * ms",
        "consumer: attempt 3 in * ms",
        "consumer: attempt 4 in * ms",
        "the broker is back",
        "60 of 60 messages are done, by * incarnations",
    ];
    assert_printed("broker", &expected);
}

#[test]
fn seed0_50_database_pool_replaces_one_connection_and_later_all_at_spread_times() {
    let expected = [
        "conn-3: attempt 1 in * ms",
        "conn-3 broke; the incarnations are now [1, 1, 2, 1, 1, 1]",
        "the database is gone",
        "conn-*: attempt * in * ms",
        "the database is back; the connections came after, in ms, [*]",
        "the api runs as incarnation 1, its queries: Tally { answered: *, unavailable: * }",
    ];
    assert_printed("database_pool", &expected);
}

#[test]
fn failing_vendor_retries_after_a_500_and_not_after_a_400_and_not_for_ever() {
    let expected = [
        "orders: failed: the vendor fails with 500",
        "orders: attempt 3 in * ms",
        "orders: active after 3 restarts",
        "report: errored after 0 restarts",
        "the vendor is broken for good",
        "orders: given up",
        "the program ends: `app` gave up on `app/orders`: failed: the vendor fails with 500",
    ];
    assert_printed("failing_vendor", &expected);
}

#[test]
fn flaky_is_started_until_it_is_active() {
    let expected = ["connection: attempt 1: refused", "app * active *", "active after * failures"];
    assert_printed("flaky", &expected);
}

#[test]
fn seed0_50_rate_limited_clients_spread_their_requests() {
    let expected = [
        "without verger, by second: [Second { served: 10, refused: * }*]",
        "order 1, attempt 1: vendor: the circuit is open for another *ms; the next in * ms",
        "3 of 3 orders are placed; the poller runs as incarnation *",
        "with verger, by second: [Second { served: 10, refused: * }*]",
    ];
    assert_printed("rate_limited", &expected);
}

#[cfg(feature = "config")]
#[test]
fn config_layers_overrides_the_file_by_environment_variables() {
    let run = |variables: &[(&str, &str)]| {
        let output = command("config_layers").envs(variables.iter().copied()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let has = |text: &str, words: &str| assert!(text.contains(words), "{words:?}: {text}");

    let (ended_well, out, errors) = run(&[]);
    assert!(ended_well, "{errors}");
    has(&out, "app/writer: batches of 100 to db:5432\n");
    has(&out, r#""min":"1s","max":"30s""#);
    let (ended_well, out, errors) = run(&[
        ("APP__app/writer__config__batch", "7"),
        ("APP__app/writer__restart__max_backoff", "9s"),
    ]);
    assert!(ended_well, "{errors}");
    has(&out, "app/writer: batches of 7 to db:5432\n");
    has(&out, r#""min":"1s","max":"9s""#);
    let (ended_well, out, _) = run(&[
        ("APP__app/writer__config__batch", "many"),
        ("APP__app/writer__restart__when", "sometimes"),
    ]);
    assert!(!ended_well && !out.contains("batches of"), "nothing is started: {out}");
}

/// Rule: seed4.08
#[cfg(all(unix, feature = "config-file", feature = "signal"))]
#[test]
fn the_program_of_elfos_document_reloads_its_file_at_real_signals() {
    use std::fs;
    use std::process::Stdio;

    let file = std::env::temp_dir().join(format!("verger-elfo-{}.toml", std::process::id()));
    let document = include_str!("../../examples/documents/elfo.toml");
    fs::write(&file, document).unwrap();
    let mut command = command("restart_policies");
    command.env("CONFIG_FILE", &file).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut wait_for = awaited(&mut program);
    wait_for(" INFO verger::lifecycle: active child=system/group_c incarnation=1");
    fs::write(&file, format!("{document}config = {{ limit = 7 }}\n")).unwrap();
    signal(&program, "-HUP");
    wait_for(" INFO verger::config: reloaded trigger=\"SIGHUP\" changes=1 unchanged=2");
    fs::write(&file, format!("{document}config = {{ limit = 13 }}\n")).unwrap();
    signal(&program, "-HUP");
    wait_for("ERROR verger::config: refused *problem=\"ValidateConfig: 13 is unlucky\"");
    wait_for(" WARN verger::config: configuration not changed trigger=\"SIGHUP\"");
    fs::write(&file, format!("{document}config = {{ limit = 7 }}\n")).unwrap();
    signal(&program, "-USR2");
    wait_for(" INFO verger::config: reloaded trigger=\"SIGUSR2\" changes=3 unchanged=0");
    signal(&program, "-TERM");
    assert_eq!(program.wait().unwrap().code(), Some(0));
    fs::remove_file(file).unwrap();
}

#[cfg(all(unix, feature = "config-file", feature = "signal"))]
#[test]
fn config_watch_reloads_a_file_that_is_edited_in_place_replaced_or_gone() {
    use std::fs;
    use std::process::Stdio;

    let directory = std::env::temp_dir().join(format!("verger-watch-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (file, beside) = (directory.join("app.toml"), directory.join("app.toml.new"));
    let batch = |batch: u32| format!("[writer.config]\nbatch = {batch}\n");
    fs::write(&file, batch(1)).unwrap();
    let mut command = command("config_watch");
    command.env("CONFIG_FILE", &file).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut wait_for = awaited(&mut program);
    wait_for("writer: batches of 1");

    fs::write(&beside, batch(2)).unwrap();
    fs::rename(&beside, &file).unwrap();
    wait_for("writer: batches of 2");
    wait_for("reloaded: 1 change, 0 unchanged");
    fs::write(&file, batch(3)).unwrap();
    wait_for("writer: batches of 3");
    wait_for("reloaded: *");
    fs::write(&beside, "[writer.restart]\nwhen = \"sometimes\"\n").unwrap();
    fs::rename(&beside, &file).unwrap();
    wait_for("not reloaded: *app.toml:2:8: unknown restart type `sometimes`*");
    fs::remove_file(&file).unwrap();
    wait_for("not reloaded: *app.toml: the file doesn't exist; create it, or check its path");

    signal(&program, "-TERM");
    assert_eq!(program.wait().unwrap().code(), Some(0));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_shared_pool_is_replaced_under_a_child_that_watches_and_one_that_is_restarted() {
    let lines = lines("shared_pool");
    let of = |name: &str| lines.iter().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(
        of("api, "),
        [
            "api, incarnation 1: uses pool 1",
            "api, incarnation 1: the pool was withdrawn",
            "api, incarnation 1: uses pool 2",
            "api, incarnation 1: the pool was withdrawn",
            "api, incarnation 1: uses pool 3",
        ]
    );
    assert_eq!(
        of("reports, "),
        [
            "reports, incarnation 1: uses pool 1",
            "reports, incarnation 2: uses pool 2",
            "reports, incarnation 3: uses pool 3",
        ]
    );
    assert_eq!(of("app/db provides ").len(), 1);
}

#[cfg(all(target_os = "linux", feature = "process"))]
#[test]
fn a_process_that_breaks_is_started_again_and_nothing_is_left_of_it() {
    let lines = lines("process");
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    for text in [
        "cause=\"activation failed: exited with code 3: input.mov: unexpected end of file\"",
        "cause=\"activation failed: killed by SIGSEGV (11)",
        "output child=app/encoder incarnation=3 stream=stdout line=\"encoding\"",
        "output child=app/encoder incarnation=3 stream=stdout line=\"not now\"",
        "no process is left",
    ] {
        assert!(has(text), "{text}: {lines:#?}");
    }
}

#[test]
fn a_chat_refuses_a_client_beyond_its_limit_and_survives_the_panic_of_one() {
    // Behind two lines of the harness.
    assert_eq!(
        lines("tcp_chat")[2..],
        [
            "all three hear ann",
            "refused: `chat/clients` already has 3 children, which is its limit",
            "chat/clients/client#2: panicked: a client said so",
            "dan has the place that is free, and all three hear dan",
            "chat/listener: incarnation 1",
        ]
    );
}
