//! The same probes and the same work for verger and for other crates that supervise tasks.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml               prints all answers
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- --write    writes them into the book
//! ... -- probe kameo hung                                                    runs one probe
//! ... -- speed                                                               measures: see `speed`
//! ```
//!
//! Each probe and each measurement has a process of its own with a time limit: a crate that hangs, or
//! takes its process down, has given an answer as well.
//!
//! To add a crate, pin it in `Cargo.toml`, implement [`Peer`](peer::Peer) in a file of `crates`, and add
//! it to the list in `facts/mod.rs`, in `speed/columns.rs`, or both. `facts/claims.txt` has what the crate
//! says of itself.

mod board;
mod book;
mod child;
mod crates;
mod facts;
mod lives;
#[path = "../../measure/machine.rs"]
mod machine;
mod peer;
mod process;
mod speed;
mod texts;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] | ["--write"] => facts::all(arguments.contains(&"--write")),
        ["probe", package, probe] => facts::one(package, probe),
        ["speed", ref arguments @ ..] => speed::run(arguments),
        _ => Err("arguments: nothing, `--write`, `probe PACKAGE PROBE`, or `speed`".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
