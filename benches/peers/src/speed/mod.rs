//! What the crates cost: the same work on each, on tokio by hand, and on others than Rust.
//!
//! ```text
//! ... -- speed                          measures, and prints the page
//! ... -- speed --write                  writes it
//! ... -- speed --only start,restart     measures a part: groups, or works
//! ... -- speed --rounds 1               instead of 5
//! ... -- speed --anyway                 although other programs take part of the machine
//! ```
//!
//! To measure one more crate, pin it in `Cargo.toml`, implement [`Peer`](peer::Peer) in a file of its
//! own, and name that in `columns.rs`.

mod child;
mod columns;
mod hydra;
mod kameo;
#[allow(dead_code, reason = "verger's own benches use more of it")]
#[path = "../../../measure/load.rs"]
mod load;
mod machine;
mod otp;
mod page;
mod peer;
mod process;
mod ractor;
mod ractor_supervisor;
mod raw;
mod rounds;
mod runs;
mod suture;
mod task_supervisor;
mod tokio_graceful_shutdown;
mod verger;
mod work;

use std::fs;
use std::process::ExitCode;

use self::rounds::Plan;
use self::work::{Group, Work};

pub const USAGE: &str = "\
speed [--write | --only <groups or works>] [--rounds <number>] [--anyway]
    groups: start, restart, tree, message";

const ROUNDS: usize = 5;

/// Carries out the arguments, or says what is wrong with them.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    if let [columns::MEASURE, column, work] = *arguments {
        let column = columns::here().into_iter().find(|it| it.name == column);
        let work = Work::named(work).ok_or("no such work")?;
        column.ok_or("no such column")?.measure(work);
    }
    let mut plan = Plan { works: Work::ALL.into(), rounds: ROUNDS, anyway: false };
    let mut write = false;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match *argument {
            "--write" => write = true,
            "--anyway" => plan.anyway = true,
            "--rounds" => plan.rounds = value()?.parse().map_err(|_| "no number of rounds")?,
            "--only" => plan.works = works(value()?)?,
            other => return Err(format!("what is {other}?")),
        }
    }
    if write && plan.works != Work::ALL {
        return Err("the page is about all of it".into());
    }
    let (columns, missing) = columns::all();
    let (cells, disturbance) = rounds::measure(&columns, &plan);
    fs::remove_dir_all(columns::scratch()).map_err(|error| error.to_string())?;
    let page = page::page(&columns, &missing, &cells, &disturbance, &plan);
    if write {
        page::write(&page)
    } else {
        print!("{page}")
    }
    Ok(ExitCode::SUCCESS)
}

/// The works that are meant by a list of groups and works, in the order of the tables.
fn works(list: &str) -> Result<Vec<Work>, String> {
    let mut meant = Vec::new();
    for name in list.split(',') {
        let group = Group::ALL.into_iter().find(|group| group.name() == name);
        match (group, Work::named(name)) {
            (Some(group), _) => meant.extend(group.works()),
            (None, Some(work)) => meant.push(work),
            (None, None) => return Err(format!("there is no {name}")),
        }
    }
    Ok(Work::ALL.into_iter().filter(|work| meant.contains(work)).collect())
}
