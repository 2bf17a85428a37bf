//! Who is measured: the columns of the tables.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use super::peer::Peer;
use super::runs;
use super::work::Work;
use super::{
    hydra, kameo, otp, ractor, ractor_supervisor, raw, suture, task_supervisor,
    tokio_graceful_shutdown, verger,
};

/// Before the other arguments, if this process is to measure.
pub const MEASURE: &str = "measure";

/// A column.
pub struct Column {
    /// On the command line, and over the column.
    pub name: &'static str,
    /// With its version, and what it can't be used without.
    pub versions: String,
    /// How it is driven, what a stop does, and what is peculiar.
    pub note: &'static str,
    pub can: fn(Work) -> bool,
    program: Program,
}

enum Program {
    /// This one, once more.
    This(fn(Work) -> !),
    /// Another one, with arguments before the name of the work.
    Other(PathBuf, Vec<String>),
}

impl Column {
    fn of<P: Peer>(name: &'static str, packages: &[&str], note: &'static str) -> Self {
        let versions: Vec<_> = packages.iter().map(|package| crate::page::named(package)).collect();
        Self {
            name,
            versions: versions.join(" on "),
            note,
            can: P::can,
            program: Program::This(runs::run::<P>),
        }
    }

    /// A program that isn't written in Rust.
    pub fn other(
        name: &'static str,
        versions: String,
        note: &'static str,
        can: fn(Work) -> bool,
        program: PathBuf,
        arguments: Vec<String>,
    ) -> Self {
        Self { name, versions, note, can, program: Program::Other(program, arguments) }
    }

    /// What does one measurement.
    pub fn command(&self, work: Work) -> Command {
        let mut command = match &self.program {
            Program::This(_) => {
                let this = env::current_exe().expect("this program has a path");
                let mut command = Command::new(this);
                command.args(["speed", MEASURE, self.name]);
                command
            }
            Program::Other(program, arguments) => {
                let mut command = Command::new(program);
                command.args(arguments).env("GOMAXPROCS", runs::WORKERS.to_string());
                command
            }
        };
        command.arg(work.name());
        command
    }

    /// Does one measurement in this process.
    pub fn measure(&self, work: Work) -> ! {
        match self.program {
            Program::This(measure) => measure(work),
            Program::Other(..) => panic!("{} has a program of its own", self.name),
        }
    }
}

/// Those that are part of this program.
pub fn here() -> Vec<Column> {
    vec![
        Column::of::<raw::Raw>("by hand", &["tokio"], raw::NOTE),
        Column::of::<verger::Verger>("verger", &["verger"], verger::NOTE),
        Column::of::<task_supervisor::TaskSupervisor>(
            "task-supervisor",
            &["task-supervisor"],
            task_supervisor::NOTE,
        ),
        Column::of::<ractor::Ractor>("ractor", &["ractor"], ractor::NOTE),
        Column::of::<ractor_supervisor::RactorSupervisor>(
            "ractor-supervisor",
            &["ractor-supervisor", "ractor"],
            ractor_supervisor::NOTE,
        ),
        Column::of::<kameo::Kameo>("kameo", &["kameo"], kameo::NOTE),
        Column::of::<hydra::Hydra>("hydra", &["hydra"], hydra::NOTE),
        Column::of::<tokio_graceful_shutdown::TokioGracefulShutdown>(
            "tokio-graceful-shutdown",
            &["tokio-graceful-shutdown"],
            tokio_graceful_shutdown::NOTE,
        ),
    ]
}

/// All that can be measured on this machine, and what can't, with the reason.
pub fn all() -> (Vec<Column>, Vec<String>) {
    let (mut columns, mut missing) = (here(), Vec::new());
    for other in [otp::column(), suture::column()] {
        match other {
            Ok(column) => columns.push(column),
            Err(why) => missing.push(why),
        }
    }
    (columns, missing)
}

/// Where what is compiled for this run is put.
pub fn scratch() -> PathBuf {
    let folder = env::temp_dir().join(format!("verger-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for such files");
    folder
}

/// What a program says, if it is there and ends well.
///
/// # Errors
///
/// What it says otherwise.
pub fn ask(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}
