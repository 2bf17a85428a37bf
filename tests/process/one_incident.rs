//! The chapter *Following one incident*: each command that it shows is run over the log of `examples/incident.rs`, and
//! prints what the chapter shows.
//!
//! The example sets the subscriber of its process, so this test binary runs itself. Commands with `jq` and `journalctl` are
//! skipped where these, or `systemd-journal-remote`, aren't installed, unless `VERGER_INCIDENT_TOOLS` is set.

#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Termination};

use serde_json::Value;

use crate::entry;

#[path = "../../examples/incident.rs"]
mod incident;

const CHOICE: &str = "VERGER_TEST_INCIDENT";
const PAGE: &str = include_str!("../../book/src/one-incident.md");

/// The entry point of the example. As an ordinary test, it returns.
#[test]
fn program() {
    if std::env::var_os(CHOICE).is_some() {
        entry::run(|| incident::main().report());
    }
}

/// Returns the log of the example, without the lines of the harness.
fn log(format: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "one_incident::program", "--nocapture", "--test-threads", "2"]);
    let output = command.env(CHOICE, "yes").env("LOG", format).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("2026-") || line.starts_with('{'));
    // The example's module, which is a program in the chapter.
    lines.map(|line| line.replace("process::one_incident::incident", "incident") + "\n").collect()
}

/// A directory with both logs. It is removed when this is dropped.
struct Logs(PathBuf);

impl Logs {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("verger-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("app.log"), log("text")).unwrap();
        fs::write(directory.join("app.json"), log("json")).unwrap();
        Self(directory)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// Writes the journal of a service that has written these lines to its standard output, and a program `journalctl` that
    /// reads it.
    fn write_journal(&self, lines: &str) {
        let mut export = String::new();
        // The service manager's own line, which isn't JSON.
        let started = "2026-11-30T03:11:59.000Z app.service: Started.";
        for line in [started].into_iter().chain(lines.lines()) {
            let at: jiff::Timestamp = time_of(line).parse().unwrap();
            let (at, boot) = (at.as_microsecond(), "0123456789abcdef0123456789abcdef");
            export += &format!("__REALTIME_TIMESTAMP={at}\n__MONOTONIC_TIMESTAMP={at}\n");
            export += &format!("_BOOT_ID={boot}\n_TRANSPORT=stdout\nPRIORITY=6\n");
            export += &format!("_SYSTEMD_UNIT=app.service\nMESSAGE={line}\n\n");
        }
        let (export_file, journal) = (self.0.join("app.export"), self.0.join("app.journal"));
        fs::write(&export_file, export).unwrap();
        let _ = fs::remove_file(&journal);
        let mut remote = Command::new(REMOTE);
        let output = remote.arg("-o").arg(&journal).arg(&export_file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let real = find("journalctl").unwrap();
        let script = format!(
            "#!/bin/sh\nexec {} --quiet --file {} \"$@\"\n",
            real.display(),
            journal.display()
        );
        let program = self.0.join("journalctl");
        fs::write(&program, script).unwrap();
        fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns what a command prints.
    fn run(&self, command: &str) -> String {
        if command.contains("journalctl") {
            let is_json = command.contains("jq ");
            self.write_journal(&self.read(if is_json { "app.json" } else { "app.log" }));
        }
        let path = format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", command]).current_dir(&self.0);
        let output = shell.env("PATH", path).env("TZ", "UTC").env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{command}\n{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const REMOTE: &str = "/lib/systemd/systemd-journal-remote";

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.is_file())
}

/// Whether the tools of a command are installed.
fn can_run(command: &str) -> bool {
    let has_journal = find("journalctl").is_some() && Path::new(REMOTE).exists();
    let can = (!command.contains("jq ") || find("jq").is_some())
        && (!command.contains("journalctl") || has_journal);
    assert!(can || std::env::var_os("VERGER_INCIDENT_TOOLS").is_none(), "no tool for: {command}");
    can
}

/// Returns the time of a line, as text or as JSON.
fn time_of(line: &str) -> &str {
    let at = line.find("2026-").unwrap();
    &line[at..at + "2026-11-30T03:12:00.000Z".len()]
}

/// Returns the code blocks of the page with this info string.
fn blocks(info: &str) -> Vec<&'static str> {
    let begin = format!("\n```{info}\n");
    let blocks = PAGE.split(&begin).skip(1);
    blocks.map(|rest| rest.split_once("\n```").unwrap().0).collect()
}

/// Returns the commands that the page shows, each with what it prints.
fn commands() -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    // A quoted text is open, or the line ends with a backslash.
    let mut continues = false;
    for line in blocks("console").join("\n").lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), String::new()));
        } else if continues {
            let command = &mut commands.last_mut().unwrap().0;
            *command += &format!("\n{line}");
        } else {
            commands.last_mut().unwrap().1 += &format!("{line}\n");
        }
        continues =
            commands.last().unwrap().0.matches('\'').count() % 2 == 1 || line.ends_with('\\');
    }
    commands
}

#[test]
fn each_command_of_the_chapter_prints_what_the_chapter_shows() {
    let logs = Logs::new("commands");
    let commands = commands();
    for tool in ["grep ", "jq ", "journalctl "] {
        assert!(commands.iter().any(|(command, _)| command.contains(tool)), "{tool}");
    }
    let mut page = PAGE.to_owned();
    for (command, shown) in commands {
        // Those that make the logs, and those that need a program which runs.
        if command.contains("cargo run") || command.contains("verger-top") || !can_run(&command) {
            continue;
        }
        let printed = logs.run(&command);
        if std::env::var_os("VERGER_WRITE_BOOK").is_some() {
            let (before, after) =
                (format!("$ {command}\n{shown}"), format!("$ {command}\n{printed}"));
            page = page.replacen(&before, &after, 1);
        } else {
            assert_eq!(printed, shown, "left: printed, right: in the chapter\n{command}");
        }
    }
    if page != PAGE {
        fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/one-incident.md"), page).unwrap();
    }
}

/// Returns the value at a path of a LogQL `json` stage, such as `spans[0].child`.
fn at<'a>(line: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(line, |value, part| match part.split_once('[') {
        Some((name, index)) => {
            value.get(name)?.get(index.trim_end_matches(']').parse::<usize>().ok()?)
        }
        None => value.get(part),
    })
}

/// A query for Loki of the form `{…} |= `…` | json a="…", b="…" | a="…" or b="…" | line_format "{{.a}}"`, whose stages from `json`
/// on may be missing.
struct Query<'a> {
    filter: &'a str,
    /// The names of the `json` stage, and where their values are.
    labels: Vec<(&'a str, &'a str)>,
    /// Of which one has to hold.
    conditions: Vec<(&'a str, &'a str)>,
    /// The names that are shown.
    shown: Vec<&'a str>,
}

impl<'a> Query<'a> {
    fn new(text: &'a str) -> Self {
        let pair = |text: &'a str| {
            let (name, value) = text.trim().split_once('=').unwrap();
            (name, value.trim_matches('"'))
        };
        let mut stages = text.split("\n  | ");
        let filter = stages.next().unwrap().split('`').nth(1).unwrap();
        let labels = stages.next().map(|stage| stage.strip_prefix("json ").unwrap());
        let labels = labels.into_iter().flat_map(|labels| labels.split(',')).map(pair).collect();
        let conditions = stages.next().into_iter().flat_map(|stage| stage.split(" or "));
        let conditions = conditions.map(pair).collect();
        let shown = stages.next().into_iter().flat_map(|stage| stage.split("{{.").skip(1));
        let shown = shown.map(|name| name.split_once("}}").unwrap().0).collect();
        Self { filter, labels, conditions, shown }
    }

    fn label(&self, line: &str, name: &str) -> Option<String> {
        let path = self.labels.iter().find(|label| label.0 == name);
        let path = path.unwrap_or_else(|| panic!("`{name}` is no label")).1;
        let line: Value = serde_json::from_str(line).unwrap();
        at(&line, path).map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
    }

    fn selects(&self, line: &str) -> bool {
        let holds = |it: &(&str, &str)| self.label(line, it.0).as_deref() == Some(it.1);
        line.contains(self.filter)
            && (self.conditions.is_empty() || self.conditions.iter().any(holds))
    }
}

/// Without a Loki: the lines have all that the queries name, and the queries select those that `grep` selects.
#[test]
fn the_queries_for_loki_select_the_lines_that_grep_selects() {
    let logs = Logs::new("queries");
    let (text, json) = (logs.read("app.log"), logs.read("app.json"));
    let is_selected: Vec<_> = text.lines().map(|line| line.contains("=app/db")).collect();
    let queries: Vec<_> = blocks("logql").into_iter().map(Query::new).collect();
    assert_eq!(queries.len(), 2, "one for text, one for JSON");
    for query in &queries {
        let log = if query.labels.is_empty() { &text } else { &json };
        let selected: Vec<_> = log.lines().map(|line| query.selects(line)).collect();
        assert_eq!(selected, is_selected, "{}", query.filter);
        for (name, _) in &query.labels {
            let has = |line| query.selects(line) && query.label(line, name).is_some();
            assert!(log.lines().any(has), "no line has `{name}`");
        }
        let is_label = |name: &&str| query.labels.iter().any(|label| label.0 == *name);
        assert!(query.shown.iter().all(is_label), "{:?}", query.shown);
    }
}
