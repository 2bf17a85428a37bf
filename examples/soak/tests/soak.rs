//! Tests of the soak as a process: flags, last line and exit code.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

/// The flags of a short run, which tests the soak rather than the rules.
const SHORT: &str = "--minutes 0.04 --children 2000";

fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(args.split_whitespace()).env("RUST_LOG", "off");
    command
}

/// The result of a run.
#[derive(Debug)]
struct End {
    code: Option<i32>,
    verdict: HashMap<String, f64>,
    errors: String,
}

impl End {
    fn of(output: &Output) -> Self {
        let out = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = out.lines().last().and_then(|line| line.strip_prefix("soak: "));
        let last = last.unwrap_or_else(|| panic!("no verdict in {out:?}, {errors}"));
        let pairs = last.split(' ').filter_map(|pair| pair.split_once('='));
        let verdict = pairs.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect();
        Self { code: output.status.code(), verdict, errors }
    }

    fn get(&self, key: &str) -> f64 {
        *self.verdict.get(key).unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }
}

#[test]
fn the_library_breaks_no_rule() {
    let end = End::of(&command(SHORT).output().unwrap());

    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!([end.get("leaked"), end.get("violations")], [0.0, 0.0]);
    assert!(end.get("children") >= 2000.0 && end.get("starts") > end.get("children"), "{end:?}");
    for counter in ["minutes", "restarts", "panics", "hangs", "aborts"] {
        assert!(end.get(counter) > 0.0, "{counter}: {end:?}");
    }
}

#[test]
fn a_planted_double_start_is_found() {
    let end = End::of(&command(&format!("{SHORT} --plant double-start")).output().unwrap());

    assert_eq!(end.code, Some(1), "{end:?}");
    assert!(end.get("violations") > 0.0, "{end:?}");
    assert!(end.errors.contains("two lives of incarnation"), "{}", end.errors);
}

#[test]
fn a_signal_ends_the_soak_in_order() {
    let mut command = command("--minutes 60 --children 500");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap()).lines();
    while !out.next().expect("it says when it is up").unwrap().starts_with("up:") {}

    let pid = process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());

    let stdout = out.map(|line| line.unwrap() + "\n").collect::<String>().into_bytes();
    let end = End::of(&Output { stdout, ..process.wait_with_output().unwrap() });
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.get("minutes") < 60.0, "{end:?}");
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for (args, words) in [
        ("--nope", "invalid option '--nope'"),
        ("--minutes never", "--minutes: `never` is not a number"),
        ("--plant weeds", "--plant: `weeds` is neither"),
    ] {
        let Output { status, stdout, stderr } = command(args).output().unwrap();
        let error = String::from_utf8(stderr).unwrap();

        assert_eq!(status.code(), Some(2), "{args}: {error}");
        assert!(stdout.is_empty(), "nothing was started");
        assert!(error.starts_with("soak: ") && error.contains(words), "{args}: {error}");
        assert!(error.contains("Usage: soak [FLAGS]"), "{args}: {error}");
    }
}

#[test]
fn help_is_no_failure() {
    let output = command("--help").output().unwrap();

    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("--plant FAULT"));
}
