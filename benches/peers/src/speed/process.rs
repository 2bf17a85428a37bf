//! One measurement, in a process of its own with a time limit.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::load::Load;

/// No measurement may take longer.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What came of it.
pub struct Ran {
    /// What it printed, which may be a part of what it should have.
    pub figures: Vec<(String, f64)>,
    pub end: End,
    pub took: Duration,
    /// What others had of the machine meanwhile, and whether that is too much.
    pub foreign: Option<(f64, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// It had to be killed.
    OverTime,
    /// It ended otherwise.
    Died(String),
}

pub fn run(mut command: Command) -> Ran {
    let before = Load::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program was there a moment ago");
    let began = Instant::now();
    let end = loop {
        match child.try_wait().expect("a child process can be waited for") {
            Some(status) if status.success() => break End::Well,
            Some(status) => break End::Died(status.to_string()),
            None if began.elapsed() > LIMIT => {
                child.kill().expect("a child process can be killed");
                child.wait().expect("a child process can be waited for");
                break End::OverTime;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let took = began.elapsed();
    let foreign = before.zip(Load::now()).map(|(before, now)| before.foreign(now));
    let mut said = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut said).expect("figures are text");
    let figure = |line: &str| {
        let (key, figure) = line.split_once(' ')?;
        Some((key.to_owned(), figure.parse().ok()?))
    };
    Ran { figures: said.lines().filter_map(figure).collect(), end, took, foreign }
}
