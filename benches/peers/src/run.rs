//! Runs probes, each in a process of its own.

use std::env;
use std::fmt::Write as _;
use std::panic;
use std::process::Command;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::book::{self, Table};
use crate::log;
use crate::peer::{PROBES, Peer, Verdict};
use crate::process::{self, End};

/// More than all waits of a probe together.
const LIMIT: Duration = Duration::from_secs(90);

/// Evaluates an expression for the type of each crate, in the order of the table.
macro_rules! for_each_peer {
    ($peer:ident => $do:expr) => {
        for_each_peer! { $peer => $do;
            verger::Verger,
            tokio_actors::TokioActors,
            ractor_supervisor::RactorSupervisor,
            kameo::Kameo,
            hydra::Hydra,
            ash_flare::AshFlare,
            joerl::Joerl,
            speare::Speare,
            task_supervisor::TaskSupervisor,
            taskvisor::Taskvisor,
            supervised::Supervised,
            tokio_graceful_shutdown::TokioGracefulShutdown,
        }
    };
    ($peer:ident => $do:expr; $($module:ident::$type:ident,)*) => {
        $({
            type $peer = crate::$module::$type;
            $do
        })*
    };
}

/// Runs all probes, and writes or prints the table and the notes.
///
/// # Errors
///
/// The page can't be written.
pub fn all(write: bool) -> Result<(), String> {
    let mut columns: Vec<(&[&str], Vec<Verdict>)> = Vec::new();
    for_each_peer!(P => {
        let verdicts = PROBES.map(|probe| ask(P::PACKAGES[0], probe));
        columns.push((P::PACKAGES, verdicts.into()));
    });
    let versions: Vec<_> =
        columns.iter().map(|(packages, _)| book::with_versions(packages)).collect();
    let head: Vec<_> = [""].into_iter().chain(versions.iter().map(String::as_str)).collect();
    let mut table = Table::new(&head);
    for (row, probe) in PROBES.iter().enumerate() {
        let verdicts = columns.iter().map(|(_, verdicts)| verdicts[row].cell.clone());
        table.push([(*probe).to_owned()].into_iter().chain(verdicts).collect());
    }
    let notes: String = columns.iter().map(|(packages, all)| notes(packages[0], all)).collect();
    book::publish("peers.md", "answers", &table.markdown(), write)?;
    book::publish("peers.md", "notes", &notes, write)
}

/// The notes about a crate; probes with the same note share a line.
fn notes(package: &str, verdicts: &[Verdict]) -> String {
    let mut lines: Vec<(&Verdict, Vec<&str>)> = Vec::new();
    for (probe, verdict) in PROBES.iter().zip(verdicts).filter(|(_, it)| !it.note.is_empty()) {
        match lines.iter_mut().find(|(other, _)| *other == verdict) {
            Some((_, probes)) => probes.push(probe),
            None => lines.push((verdict, vec![probe])),
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("### {package}\n\n");
    for (Verdict { cell, note }, probes) in lines {
        writeln!(text, "* *{}*: {cell}; {note}.", probes.join(", ")).expect("a string");
    }
    text + "\n"
}

/// Runs a probe as often as it takes to be sure of the answer.
fn ask(package: &str, probe: &str) -> Verdict {
    // With several threads, a race may end well several times.
    let times = if probe == "busy" { 6 } else { 1 };
    let verdicts: Vec<_> = (0..times).map(|_| ask_once(package, probe)).collect();
    let wrong = verdicts.iter().filter(|verdict| verdict.cell == "no");
    let usual = wrong.max_by_key(|wrong| verdicts.iter().filter(|other| other == wrong).count());
    let verdict = usual.unwrap_or(&verdicts[0]).clone();
    eprintln!("{package} {probe}: {}; {}", verdict.cell, verdict.note);
    verdict
}

/// Starts this program once more for one probe.
fn ask_once(package: &str, probe: &str) -> Verdict {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    let ran = process::run(command.args(["probe", package, probe]), LIMIT);
    match (ran.printed.lines().last().and_then(Verdict::parse), ran.end) {
        (_, End::OverTime) => Verdict::new("no", "the process hung and had to be killed"),
        (Some(verdict), _) => verdict,
        (None, end) => Verdict::new("no", format!("the process ended without an answer: {end:?}")),
    }
}

/// Runs one probe in this process.
///
/// # Errors
///
/// There is no such package or probe.
pub fn answer(package: &str, probe: &str) -> Result<Verdict, String> {
    if !PROBES.contains(&probe) {
        return Err(format!("no probe `{probe}`; probes: {}", PROBES.join(", ")));
    }
    // The standard library's text of a panic is not the crate's.
    panic::set_hook(Box::new(|_| {}));
    log::listen();
    for_each_peer!(P => if P::PACKAGES[0] == package {
        return Ok(in_runtime::<P>(probe));
    });
    Err(format!("no package `{package}`"))
}

fn in_runtime<P: Peer>(probe: &str) -> Verdict {
    let runtime = match probe {
        // A child blocks its thread, so only real time and other threads count.
        "busy" => Builder::new_multi_thread().worker_threads(4).enable_all().build(),
        _ => Builder::new_current_thread().enable_all().start_paused(P::PAUSED).build(),
    };
    let runtime = runtime.expect("a runtime can be built");
    let verdict = runtime.block_on(Verdict::of::<P>(probe));
    // A child may hang.
    runtime.shutdown_background();
    verdict
}
