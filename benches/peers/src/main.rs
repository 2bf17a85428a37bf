//! The same questions, asked of verger and of other crates that supervise tasks.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml               prints the page
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- --write    writes it
//! ... -- probe kameo hung                                                    asks one question
//! ... -- speed                                                               what they cost: see `speed`
//! ```
//!
//! Each question is asked in a process of its own with a time limit, so a crate that hangs, or
//! takes its process down, has answered, too.
//!
//! To put them to one more crate, pin it in `Cargo.toml`, implement [`Peer`](peer::Peer) in a file
//! of its own, and name that in `run.rs`.

mod ash_flare;
mod board;
mod hydra;
mod joerl;
mod kameo;
mod log;
mod page;
mod peer;
mod probe;
mod ractor_supervisor;
mod run;
mod script;
mod speare;
mod speed;
mod supervised;
mod task_supervisor;
mod taskvisor;
mod tokio_actors;
mod tokio_graceful_shutdown;
mod verger;

use std::process::ExitCode;

use crate::probe::Probe;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => print!("{}", page::page(&run::ask_all())),
        ["--write"] => page::write(&page::page(&run::ask_all())),
        ["probe", package, probe] => match Probe::named(probe) {
            Some(probe) => println!("{}", run::answer(package, probe).line()),
            None => return usage(),
        },
        ["speed", ref arguments @ ..] => match speed::run(arguments) {
            Ok(code) => return code,
            Err(problem) => {
                eprintln!("{problem}");
                return usage();
            }
        },
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("arguments: none, or --write, or probe <package> <name of a probe>, or");
    eprintln!("{}", speed::USAGE);
    ExitCode::FAILURE
}
