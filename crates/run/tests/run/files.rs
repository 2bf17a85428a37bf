//! Files with mistakes, and the command line: exact texts, exit code 2, and nothing is started.

use std::process::Output;

use crate::program::Files;

/// Runs the program to its end. Returns the exit code, stdout and stderr.
fn output(files: &Files, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = files.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Checks that a file is refused with these lines, by both ways to call the program.
#[track_caller]
fn assert_refused(text: &str, expected: &[&str]) {
    let files = Files::new(text);
    let expected = format!("{}\n", expected.join("\n"));
    for args in [&["check", "run.toml"][..], &["run.toml"], &["--json", "run.toml"]] {
        assert_eq!(output(&files, args), (Some(2), String::new(), expected.clone()), "{args:?}");
    }
    assert!(!files.path("started").exists(), "nothing is started");
}

#[test]
fn a_file_without_mistakes_is_named() {
    let files = Files::new("[process.web]\ncommand = [\"touch\", \"started\"]\n");
    let valid = "run.toml: 1 process, no mistakes\n".to_owned();
    assert_eq!(output(&files, &["check", "run.toml"]), (Some(0), valid, String::new()));
    assert!(!files.path("started").exists(), "nothing is started");
}

#[test]
fn the_demonstration_has_no_mistakes() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/demo.toml");
    let (code, printed, mistakes) = output(&Files::new(""), &["check", demo]);
    assert_eq!((code, &mistakes[..]), (Some(0), ""));
    assert!(printed.ends_with("demo.toml: 7 processes, no mistakes\n"), "{printed}");
}

#[test]
fn the_file_in_the_book_has_no_mistakes() {
    let page = include_str!("../../../../book/src/processes.md");
    let (_, section) = page.split_once("## A supervisor for processes").unwrap();
    let file = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let valid = "run.toml: 2 processes, no mistakes\n".to_owned();
    let checked = output(&Files::new(file), &["check", "run.toml"]);
    assert_eq!(checked, (Some(0), valid, String::new()));
}

#[test]
fn unknown_keys_are_named_with_a_similar_one_or_all() {
    assert_refused(
        r#"
[run]
consol = "127.0.0.1:7007"

[process.good]
command = ["touch", "started"]

[process.web]
comand = ["sleep", "1"]
backoff = { curve = "none" }
ready = { lin = "listening" }

[colour]
"#,
        &[
            "run.toml:3:1: `run.consol`: unknown key; did you mean `console`?",
            "run.toml:9:1: `process.web.comand`: unknown key; did you mean `command`?",
            "run.toml:10:1: `process.web.backoff`: this is a key of the table `restart`; write it below \
             [process.web.restart]",
            "run.toml:11:11: `process.web.ready.lin`: unknown variant `lin`, expected one of `spawned`, `notify`, \
             `line`, `port`, `command`; write, for example, ready = { line = \"listening\" } or ready = { port = 8080 }",
            "run.toml:13:2: `colour`: unknown key; write `process` or `run`",
        ],
    );
}

#[test]
fn commands_are_lists_that_are_not_empty() {
    assert_refused(
        r#"
[process.a]
command = []
[process.b]
command = [""]
[process.c]
command = "sleep 10"
[process.d]
directory = "/"
[process.e]
command = ["touch", "started"]
health = { command = [] }
"#,
        &[
            "run.toml:3:1: `process.a.command`: the command is empty; write the program and its arguments, for \
             example command = [\"sleep\", \"10\"]",
            "run.toml:5:1: `process.b.command`: the command is empty; write the program and its arguments, for \
             example command = [\"sleep\", \"10\"]",
            "run.toml:7:11: `process.c.command`: invalid type: string \"sleep 10\", expected a sequence; write, for \
             example, command = [\"sleep\", \"10\"]",
            "run.toml:8:1: `process.d`: missing field `command`; write, for example, command = [\"sleep\", \"10\"]",
            "run.toml:12:12: `process.e.health.command`: the command is empty; write the program and its arguments, \
             for example health = { command = [\"pg_isready\"], interval = \"10s\" }",
        ],
    );
}

#[test]
fn requirements_are_other_processes_and_have_no_cycle() {
    assert_refused(
        r#"
[process.a]
command = ["touch", "started"]
requires = ["b"]
[process.b]
command = ["true"]
requires = ["c"]
[process.c]
command = ["true"]
requires = ["b"]
[process.d]
command = ["true"]
requires = ["d", "f"]
"#,
        &[
            "run.toml:7:1: `process.b.requires`: a process would wait for itself: b → c → b; remove one of these \
             requirements",
            "run.toml:13:1: `process.d.requires`: there is no process `f`; write `a`, `b` or `c`",
            "run.toml:13:1: `process.d.requires`: a process would wait for itself: d → d; remove one of these \
             requirements",
        ],
    );
}

#[test]
fn values_are_named_with_what_to_write_instead() {
    assert_refused(
        r#"
[run]
console = "everywhere"

[process.a]
command = ["touch", "started"]
health = { command = ["true"], interval = "10" }
shutdown = "5"
restart = { when = "sometimes", own_restarts = { max = 5, period = 60 } }
[process.b]
command = ["true"]
ready = { port = 99999 }
[process.c]
command = ["true"]
success_exit_codes = [256]
[process.d]
command = ["true"]
stop_signal = "SIGKILL"
[process.e]
command = ["true"]
environment = { PASSWORD = 4711 }
[process.e2]
command = ["true"]
environment = "PASSWORD=4711"
[process."f g"]
command = ["true"]
[process.reload]
command = ["true"]
"#,
        &[
            "run.toml:3:11: `run.console`: invalid socket address syntax; write, for example, console = \
             \"127.0.0.1:7007\"",
            "run.toml:7:43: `process.a.health.interval`: invalid value: string \"10\", expected a duration; write, \
             for example, health = { command = [\"pg_isready\"], interval = \"10s\" }",
            "run.toml:8:1: `process.a.shutdown`: unknown shutdown `5`; write a time such as `5s`, `drain 5s`, `brutal_kill` or \
             `infinity`",
            "run.toml:9:13: `process.a.restart.when`: unknown restart type `sometimes`; write `permanent`, `always`, \
             `transient`, `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, `on_abnormal`, \
             `on_abort` or `on_watchdog`",
            "run.toml:9:59: `process.a.restart.own_restarts.period`: invalid type: integer `60`, expected \
             a duration with a unit in quotes, such as \"60s\", or \"infinity\"",
            "run.toml:12:9: `process.b.ready`: 99999 isn't a port from 1 to 65535; write, for example, ready = { \
             line = \"listening\" } or ready = { port = 8080 }",
            "run.toml:15:22: `process.c.success_exit_codes`: 256 isn't an exit code from 0 to 255; write, for example, \
             success_exit_codes = [2]",
            "run.toml:18:15: `process.d.stop_signal`: unknown variant `SIGKILL`, expected one of `SIGTERM`, `SIGINT`, \
             `SIGQUIT`, `SIGHUP`, `SIGUSR1`, `SIGUSR2`, `SIGWINCH`; write, for example, stop_signal = \"SIGINT\"",
            "run.toml:21:28: `process.e.environment.PASSWORD`: expected a text in quotes for each variable; write, for example, \
             environment = { PORT = \"8080\" }",
            "run.toml:24:15: `process.e2.environment`: expected a text in quotes for each variable; write, for \
             example, environment = { PORT = \"8080\" }",
            "run.toml:25:10: `process.f g`: `f g` can't be a name; write one of letters, digits, `-` and `_`",
            "run.toml:27:10: `process.reload`: the name is taken by the child that reloads this file; write a \
             different one",
        ],
    );
}

#[test]
fn a_file_that_describes_nothing_is_named() {
    assert_refused(
        "[process.a",
        &["run.toml:1:11: unclosed table, expected `]`; correct the TOML syntax"],
    );
    let none = "run.toml:1:1: no process is described; write, for example, [process.web] and below it command = \
                [\"sleep\", \"10\"]";
    assert_refused("", &[none]);
    assert_refused(
        "[process]\nweb = 1\n[run.x]\n",
        &[
            "run.toml:2:1: `process.web`: this isn't a table; write, for example, command = [\"sleep\", \"10\"]",
            "run.toml:3:6: `run.x`: unknown key; write `console`, `console_actions`, `probes` or `shutdown`",
        ],
    );
    assert_refused(
        "[process.web]\ncommand = [\"true\"]\nrequires = [\"db\"]",
        &["run.toml:3:1: `process.web.requires`: there is no process `db`; remove the requirement"],
    );
    let files = Files::new("");
    let absent = "absent.toml: the file can't be read: No such file or directory (os error 2); write the path of a \
                  TOML file\n";
    assert_eq!(output(&files, &["absent.toml"]), (Some(2), String::new(), absent.to_owned()));
}

#[test]
fn wrong_usage_is_code_2_and_help_is_printed() {
    let files = Files::new("");
    let wrong = "verger-run: no file; write the path of a TOML file\nTry `verger-run --help`.\n";
    assert_eq!(output(&files, &[]), (Some(2), String::new(), wrong.to_owned()));
    let (code, help, _) = output(&files, &["--help"]);
    assert_eq!(code, Some(0));
    assert!(help.starts_with("Supervises the processes that a TOML file describes.\n"), "{help}");
}
