//! Asks questions, each in a process of its own.

use std::env;
use std::io::Read;
use std::panic;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use crate::log;
use crate::peer::{Clock, Peer};
use crate::probe::{Probe, Verdict};

/// More than all waits of a probe together.
const LIMIT: Duration = Duration::from_secs(90);

/// Does something with the type of each crate, in the order of the table.
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

/// What a crate answered, in the order of [`Probe::ALL`].
pub struct Answers {
    pub packages: &'static [&'static str],
    pub verdicts: Vec<Verdict>,
}

/// Asks every crate everything.
pub fn ask_all() -> Vec<Answers> {
    let mut all = Vec::new();
    for_each_peer!(P => all.push(ask_one(P::PACKAGES)));
    all
}

fn ask_one(packages: &'static [&'static str]) -> Answers {
    let package = packages[0];
    let verdicts = Probe::ALL.into_iter().map(|probe| {
        let verdict = ask(package, probe);
        eprintln!("{package} {}: {}; {}", probe.name(), verdict.cell(), verdict.said());
        verdict
    });
    Answers { packages, verdicts: verdicts.collect() }
}

/// Asks one question, as often as it takes to be sure of the answer.
fn ask(package: &str, probe: Probe) -> Verdict {
    // Threads make the difference here, and what goes wrong now and then goes wrong.
    let times = if probe == Probe::Busy { 6 } else { 1 };
    let verdicts: Vec<_> = (0..times).map(|_| ask_once(package, probe)).collect();
    let wrong = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::No(_)));
    let usual = wrong.max_by_key(|wrong| verdicts.iter().filter(|other| other == wrong).count());
    usual.unwrap_or(&verdicts[0]).clone()
}

/// Runs this program again, to ask one question.
fn ask_once(package: &str, probe: Probe) -> Verdict {
    let this = env::current_exe().expect("this program has a path");
    let mut child = Command::new(this)
        .args(["probe", package, probe.name()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be run again");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child process can be waited for") {
            break status;
        }
        if began.elapsed() > LIMIT {
            child.kill().expect("a child process can be killed");
            child.wait().expect("a child process can be waited for");
            return Verdict::No("the process hung and had to be killed".into());
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut said).expect("verdicts are text");
    let verdict = said.lines().last().and_then(Verdict::from_line);
    verdict.unwrap_or_else(|| Verdict::No(format!("the process ended without a word: {status}")))
}

/// Answers one question in this process.
pub fn answer(package: &str, probe: Probe) -> Verdict {
    // The text of a panic on the standard error is the standard library's, not the crate's.
    panic::set_hook(Box::new(|_| {}));
    log::listen();
    for_each_peer!(P => if P::PACKAGES[0] == package {
        return in_runtime::<P>(probe);
    });
    Verdict::cannot_be_asked("there is no such package here")
}

fn in_runtime<P: Peer>(probe: Probe) -> Verdict {
    // A sibling that blocks its thread must not block the others; and then only real time counts.
    let runtime = match (probe, P::CLOCK) {
        (Probe::Busy, _) => Builder::new_multi_thread().worker_threads(4).enable_all().build(),
        (_, Clock::Paused) => Builder::new_current_thread().enable_all().start_paused(true).build(),
        (_, Clock::Real) => Builder::new_current_thread().enable_all().build(),
    };
    let runtime = runtime.expect("a runtime can be built");
    let verdict = runtime.block_on(P::ask(probe));
    // What hangs may hang.
    runtime.shutdown_background();
    verdict
}
