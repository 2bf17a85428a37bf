//! Whether the crates do what they claim: the probes, each in a process of its own.

mod claims;
mod probes;

use std::env;
use std::fmt::Write as _;
use std::panic;
use std::process::Command;
use std::time::Duration;

use tokio::runtime::Builder;

use self::claims::{Kind, claim};
use self::probes::PROBES;
use crate::book::{self, Table};
use crate::crates::{
    AshFlare, Hydra, Joerl, Kameo, RactorSupervisor, Speare, Supervised, TaskSupervisor, Taskvisor,
    TokioActors, TokioGracefulShutdown, Verger,
};
use crate::peer::Peer;
use crate::process::{self, End};
use crate::texts;

/// More than all waits of a probe together.
const LIMIT: Duration = Duration::from_secs(90);

/// A crate, with the function that runs a probe on it in this process.
struct Column {
    packages: &'static [&'static str],
    answer: fn(&str) -> Answer,
}

const fn column<P: Peer>() -> Column {
    Column { packages: P::PACKAGES, answer: answer::<P> }
}

/// All crates, in the order of the table.
const COLUMNS: [Column; 12] = [
    column::<Verger>(),
    column::<TokioActors>(),
    column::<RactorSupervisor>(),
    column::<Kameo>(),
    column::<Hydra>(),
    column::<AshFlare>(),
    column::<Joerl>(),
    column::<Speare>(),
    column::<TaskSupervisor>(),
    column::<Taskvisor>(),
    column::<Supervised>(),
    column::<TokioGracefulShutdown>(),
];

/// The answer to a probe: a cell of the table, and a note.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    cell: String,
    note: String,
}

impl Answer {
    fn new(cell: &str, note: impl Into<String>) -> Self {
        Self { cell: cell.into(), note: note.into() }
    }
}

/// Runs all probes, and writes or prints the table and the notes.
///
/// # Errors
///
/// The page can't be written.
pub fn all(write: bool) -> Result<(), String> {
    let answers = COLUMNS.map(|column| PROBES.map(|probe| ask(column.packages[0], probe)));
    let versions = COLUMNS.map(|column| book::with_versions(column.packages));
    let head: Vec<_> = [""].into_iter().chain(versions.iter().map(String::as_str)).collect();
    let mut table = Table::new(&head);
    for (row, probe) in PROBES.iter().enumerate() {
        let cells = answers.iter().map(|answers| answers[row].cell.clone());
        table.push([(*probe).to_owned()].into_iter().chain(cells).collect());
    }
    let notes = COLUMNS.iter().zip(&answers).map(|(column, all)| notes(column.packages[0], all));
    book::publish("peers.md", "answers", &table.markdown(), write)?;
    book::publish("peers.md", "notes", &notes.collect::<String>(), write)
}

/// The notes about a crate; probes with the same note share a line.
fn notes(package: &str, answers: &[Answer]) -> String {
    let mut lines: Vec<(&Answer, Vec<&str>)> = Vec::new();
    for (probe, answer) in PROBES.iter().zip(answers).filter(|(_, it)| !it.note.is_empty()) {
        match lines.iter_mut().find(|(other, _)| *other == answer) {
            Some((_, probes)) => probes.push(probe),
            None => lines.push((answer, vec![probe])),
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("### {package}\n\n");
    for (Answer { cell, note }, probes) in lines {
        writeln!(text, "* *{}*: {cell}; {note}.", probes.join(", ")).expect("a string");
    }
    text + "\n"
}

/// Runs a probe as often as it takes to be sure of the answer.
fn ask(package: &str, probe: &str) -> Answer {
    // With several threads, a race may end well several times.
    let times = if probe == "busy" { 6 } else { 1 };
    let answers: Vec<_> = (0..times).map(|_| ask_once(package, probe)).collect();
    let wrong = answers.iter().filter(|answer| answer.cell == "no");
    let usual = wrong.max_by_key(|wrong| answers.iter().filter(|other| other == wrong).count());
    let answer = usual.unwrap_or(&answers[0]).clone();
    eprintln!("{package} {probe}: {}; {}", answer.cell, answer.note);
    answer
}

/// Starts this program once more for one probe.
fn ask_once(package: &str, probe: &str) -> Answer {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    let ran = process::run(command.args(["probe", package, probe]), LIMIT);
    let line = ran.printed.lines().last().and_then(|line| line.split_once('\t'));
    match (line, ran.end) {
        (_, End::OverTime) => Answer::new("no", "the process hung and had to be killed"),
        (Some((cell, note)), _) => Answer::new(cell, note),
        (None, end) => Answer::new("no", format!("the process ended without an answer: {end:?}")),
    }
}

/// Runs one probe in this process, and prints the answer in a line.
///
/// # Errors
///
/// There is no such package or probe.
pub fn one(package: &str, probe: &str) -> Result<(), String> {
    if !PROBES.contains(&probe) {
        return Err(format!("no probe `{probe}`; probes: {}", PROBES.join(", ")));
    }
    let column = COLUMNS.iter().find(|column| column.packages[0] == package);
    let column = column.ok_or_else(|| format!("no package `{package}`"))?;
    // The standard library's text of a panic is not the crate's.
    panic::set_hook(Box::new(|_| {}));
    texts::listen();
    let answer = (column.answer)(probe);
    println!("{}\t{}", answer.cell, answer.note);
    Ok(())
}

fn answer<P: Peer>(probe: &str) -> Answer {
    let claim = claim(P::PACKAGES[0], probe);
    match claim {
        Some((Kind::Impossible, note)) => return Answer::new("–", note),
        Some((Kind::Unclaimed, note)) => return Answer::new("not claimed", note),
        _ => {}
    }
    let runtime = match probe {
        // A child blocks its thread, so only real time and other threads count.
        "busy" => Builder::new_multi_thread().worker_threads(4).enable_all().build(),
        _ => Builder::new_current_thread().enable_all().start_paused(P::PAUSED).build(),
    };
    let runtime = runtime.expect("a runtime can be built");
    let seen = runtime.block_on(probes::ask::<P>(probe));
    // A child may hang.
    runtime.shutdown_background();
    match (seen, claim) {
        (Ok(remark), _) => Answer::new("yes", remark),
        (Err(seen), Some((_, note))) => {
            Answer::new("not claimed", format!("{note} (seen: {seen})"))
        }
        (Err(seen), None) => Answer::new("no", seen),
    }
}
