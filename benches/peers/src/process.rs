//! A process with a time limit.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a process printed, and how it ended.
pub struct Ran {
    pub printed: String,
    pub end: End,
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// It was killed at the limit.
    OverTime,
    Died(String),
}

pub fn run(command: &mut Command, limit: Duration) -> Ran {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program exists");
    let began = Instant::now();
    let end = loop {
        match child.try_wait().expect("a child process can be waited for") {
            Some(status) if status.success() => break End::Well,
            Some(status) => break End::Died(status.to_string()),
            None if began.elapsed() > limit => {
                child.kill().expect("a child process can be killed");
                child.wait().expect("a child process can be waited for");
                break End::OverTime;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let took = began.elapsed();
    let mut printed = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut printed).expect("it prints text");
    Ran { printed, end, took }
}

/// What a program prints, if it is installed and ends well.
///
/// # Errors
///
/// What it prints otherwise.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
