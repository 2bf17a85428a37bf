//! Processes from their start to their stop.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::program::{Files, Program};

/// A process that says its number, and then waits.
const WAITS: &str = r#"["sh", "-c", "echo pid $$; exec sleep 1000"]"#;

#[test]
fn a_process_starts_when_those_that_it_requires_are_ready() {
    // Each writes its name into a file just before it is ready, and says who was there before it.
    let process = |name: &str, requires: &str| {
        let script = format!(
            "echo before {name}: $(cat order); echo {name} >> order; echo ready; exec sleep 1000"
        );
        format!(
            "[process.{name}]\ncommand = [\"sh\", \"-c\", \"{script}\"]\nready = {{ line = \"ready\" }}\n\
             requires = {requires}\n"
        )
    };
    let processes = [process("a", r#"["b"]"#), process("b", r#"["c"]"#), process("c", "[]")];
    let files = Files::new(&processes.concat());
    std::fs::write(files.path("order"), "").unwrap();
    let program = Program::start(&files);
    program.wait_for_all(["line=\"before c:\"", "line=\"before b: c\"", "line=\"before a: c b\""]);
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
    assert_eq!(files.alive(), []);
}

#[test]
fn a_process_that_is_killed_is_restarted() {
    let files = Files::new(&format!("[process.web]\ncommand = {WAITS}\n"));
    let program = Program::start(&files);
    let first = program.pid_of("web", 1);
    kill_process(first, Signal::KILL).unwrap();
    let cause = "restarting child=app/web incarnation=1 cause=\"failed: killed by SIGKILL (9)\"";
    program.wait_for(cause);
    let second = program.pid_of("web", 2);
    assert_ne!(first, second);
    program.signal(Signal::INT);
    assert_eq!(program.end().0, Some(0));
    assert_eq!(files.alive(), []);
}

#[test]
fn a_process_that_fails_too_often_ends_the_program_with_code_1() {
    let files = Files::new(&format!(
        r#"
[process.idle]
command = {WAITS}

[process.broken]
command = ["sh", "-c", "echo input.mov: unexpected end of file >&2; exit 3"]
requires = ["idle"]
restart = {{ own_restarts = {{ max = 2, period = "1m" }}, backoff = {{ curve = "none" }} }}
"#
    ));
    let program = Program::start(&files);
    for incarnation in 1..=2 {
        program.wait_for(&format!(
            "restarting child=app/broken incarnation={incarnation} cause=\"failed: exited with code 3: \
             input.mov: unexpected end of file\""
        ));
    }
    let (code, lines) = program.end();
    assert_eq!(code, Some(1));
    let last = "Error: `app` gave up on `app/broken`: failed: exited with code 3: input.mov: \
                unexpected end of file";
    assert_eq!(lines.last().unwrap(), last);
    assert_eq!(files.alive(), []);
}

#[test]
fn a_limit_can_leave_one_process_down_and_the_others_running() {
    let files = Files::new(&format!(
        r#"
[process.broken]
command = ["false"]
restart = {{ own_restarts = {{ max = 1, period = "1m" }}, on_exhausted = "park", backoff = {{ curve = "none" }} }}

[process.once]
command = ["sh", "-c", "exit 2"]
success_exit_codes = [2]
restart = "transient"

[process.web]
command = {WAITS}
"#
    ));
    let program = Program::start(&files);
    program.wait_for_all([
        "giving up child=app/broken incarnation=2",
        "ended normally child=app/once incarnation=1",
        "child=app/web incarnation=1 stream=stdout line=\"pid ",
    ]);
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_process_whose_health_check_fails_is_restarted() {
    let files = Files::new(&format!(
        r#"
[process.web]
command = {WAITS}
health = {{ command = ["test", "!", "-e", "sick"], interval = "10ms", failures = 1 }}
"#
    ));
    let program = Program::start(&files);
    program.pid_of("web", 1);
    std::fs::write(files.path("sick"), "").unwrap();
    let cause =
        "restarting child=app/web incarnation=1 cause=\"unhealthy: `test` exited with code 1\"";
    program.wait_for(cause);
    std::fs::remove_file(files.path("sick")).unwrap();
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_stop_leaves_no_process_whatever_it_does() {
    let files = Files::new(
        r#"
[process.daemon]
command = ["sh", "-c", "setsid sh -c 'echo started; exec sleep 1000' & wait"]

[process.stubborn]
command = ["sh", "-c", "trap '' TERM; echo started; while :; do sleep 1; done"]
shutdown = "10ms"
"#,
    );
    let program = Program::start(&files);
    program.wait_for_all([
        "child=app/daemon incarnation=1 stream=stdout line=\"started\"",
        "child=app/stubborn incarnation=1 stream=stdout line=\"started\"",
    ]);
    program.signal(Signal::TERM);
    let (code, lines) = program.end();
    assert_eq!(code, Some(3), "one of them was killed: {lines:#?}");
    assert!(lines.iter().any(|line| line.contains("killed child=app/stubborn")), "{lines:#?}");
    assert_eq!(files.alive(), []);
}

#[test]
fn the_log_can_be_json() {
    let files =
        Files::new("[process.web]\ncommand = [\"sh\", \"-c\", \"echo a b >&2; exec sleep 1000\"]");
    let program = Program::start_with(&files, &["--json", "run.toml"]);
    let line: Value = serde_json::from_str(&program.wait_for("\"output\"")).unwrap();
    let fields = serde_json::json!({
        "message": "output", "child": "app/web", "incarnation": 1, "stream": "stderr", "line": "a b"
    });
    assert_eq!(line["fields"], fields);
    program.signal(Signal::TERM);
    let (code, lines) = program.end();
    assert_eq!(code, Some(0));
    let is_json = |line: &String| serde_json::from_str::<Value>(line).is_ok();
    assert!(lines.iter().all(is_json), "{lines:#?}");
}

#[test]
fn the_console_and_the_probes_show_the_processes() {
    let files = Files::new(&format!(
        "[run]\nconsole = \"127.0.0.1:0\"\nprobes = \"127.0.0.1:0\"\n[process.web]\ncommand = {WAITS}"
    ));
    let program = Program::start(&files);
    let [console, probes, _] =
        program.wait_for_all(["serving console", "serving probes", "line=\"pid "]);
    let tree = get(&console, "/api/tree.txt");
    assert!(tree.contains("\n├─ reload "), "{tree}");
    assert!(tree.contains("\n└─ web "), "{tree}");
    assert!(get(&probes, "/livez").starts_with("HTTP/1.1 200 OK"));
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

/// Sends a request to the address in a line of the log.
fn get(line: &str, path: &str) -> String {
    let address = line.split("address=").nth(1).unwrap().split(' ').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
