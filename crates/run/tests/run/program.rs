//! A running `verger-run`: its file, its log and its processes.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const VARIABLE: &str = "VERGER_RUN_TEST";

/// How long a line may take. Only a failed test waits for that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The directory of a test, with the file `run.toml`. Its path is the mark of the processes.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new(text: &str) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.write(text);
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces the file as editors do: by one that was written beside it.
    pub(crate) fn write(&self, text: &str) {
        fs::write(self.path("new.toml"), text).unwrap();
        fs::rename(self.path("new.toml"), self.path("run.toml")).unwrap();
    }

    /// Returns the command for these arguments, which runs in the directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verger-run"));
        command.args(args).current_dir(self.0.path()).env(VARIABLE, self.0.path());
        command
    }

    /// Returns the numbers of the processes that haven't ended. What each of them is, may change until it has called `exec`.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        self.alive().into_iter().map(|(pid, _)| pid).collect()
    }

    /// Returns the processes of this test that haven't ended.
    pub(crate) fn alive(&self) -> Vec<(Pid, String)> {
        let mark = format!("{VARIABLE}={}", self.0.path().display());
        let file = |pid: Pid, name| fs::read(format!("/proc/{}/{name}", pid.as_raw_pid()));
        let has_mark = |pid: &Pid| {
            let environment = file(*pid, "environ");
            environment.is_ok_and(|it| it.split(|&byte| byte == 0).any(|it| it == mark.as_bytes()))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|it| Pid::from_raw(it.file_name().to_str()?.parse().ok()?));
        let name = |pid| {
            let line = file(pid, "cmdline").unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned()
        };
        pids.filter(has_mark).map(|pid| (pid, name(pid))).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Only if the test has failed.
        for (pid, _) in self.alive() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

pub(crate) struct Program {
    process: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(files: &Files) -> Self {
        Self::start_with(files, &["run.toml"])
    }

    pub(crate) fn start_with(files: &Files, args: &[&str]) -> Self {
        let mut process = files.command(args).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Reads until a line contains this text. Returns the line without its time.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("{text:?} did not come: {seen:#?}")
            };
            let line = without_time(line);
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
    }

    /// Reads until each of these texts was in a line, in any order. Returns these lines in the order of the texts.
    pub(crate) fn wait_for_all<const N: usize>(&self, texts: [&str; N]) -> [String; N] {
        let mut found = texts.map(|_| None);
        while let Some(missing) = found.iter().position(Option::is_none) {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("{:?} did not come", texts[missing])
            };
            let line = without_time(line);
            for (text, found) in texts.iter().zip(&mut found) {
                if found.is_none() && line.contains(text) {
                    *found = Some(line.clone());
                }
            }
        }
        found.map(Option::unwrap)
    }

    /// Reads until the child has written `pid` and a number. Returns its process.
    pub(crate) fn pid_of(&self, child: &str, incarnation: u32) -> Pid {
        let start =
            format!("child=app/{child} incarnation={incarnation} stream=stdout line=\"pid ");
        pid_in(&self.wait_for(&start))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Returns the exit code and the remaining lines.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>) {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => rest.push(without_time(line)),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it doesn't end: {rest:#?}"),
            }
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

/// Returns the process in a line that ends with `pid` and a number.
pub(crate) fn pid_in(line: &str) -> Pid {
    let number = line.trim_end_matches('"').rsplit(' ').next().unwrap();
    Pid::from_raw(number.parse().unwrap()).unwrap()
}

/// Lines of the log begin with their time.
fn without_time(line: String) -> String {
    match line.split_once("Z ") {
        Some((time, rest)) if time.starts_with("20") => rest.trim_start().to_owned(),
        _ => line,
    }
}
