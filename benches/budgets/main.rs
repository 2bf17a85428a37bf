//! What supervision costs beside hand-written tokio, with a budget for each row.
//!
//! ```text
//! cargo bench --features bus,config-file,console,mailbox,periodic,service --bench budgets                  all rows; exits with 1 if a budget isn't met
//! cargo bench --features bus,config-file,console,mailbox,periodic,service --bench budgets -- --row start   only this row
//! cargo bench --features bus,config-file,console,mailbox,periodic,service --bench budgets -- --help        all options
//! ```
//!
//! Both sides do the same work in turns, each in a process of its own. *tokio* is a `JoinSet` and a
//! `CancellationToken`, as in hand-written services; verger is used through its public API with all
//! its defaults. A row that compares verger with itself has a smaller number on its left side.

#![expect(clippy::print_stdout, reason = "the bench exists to print its table")]

mod bus;
mod busy;
mod console;
mod crowd;
mod hello;
mod lookup;
#[path = "../measure/mod.rs"]
mod measure;
mod messages;
mod periodic;
mod reload;
mod report;
mod restart;
mod row;
mod services;
mod snapshot;
mod start;
mod tokio_only;
mod trees;

use std::process::ExitCode;

use self::measure::Unit::{Bytes, Count, Nanos, PerSecond};
use self::measure::{Arguments, answer, replace_between_markers};
use self::report::Report;
use self::row::Base::{Alone, Itself, Tokio};
use self::row::Limit::{AtLeast, AtMost};
use self::row::{Row, row};

/// All budgets. The best peer is the lowest ratio to tokio in the book's page *What the peers cost*.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    //   name             compared with                  limit          peer    unit       work                      what
    row("start",          Tokio(100_000),                AtMost(1.2),   "2.1",  Nanos,     start::declared,          "start of 100,000 idle children, each"),
    row("start-by-handle", Tokio(100_000),               AtMost(2.5),   "4.4",  Nanos,     start::by_handle,         "the same through the handle, each start awaited"),
    row("bytes",          Tokio(100_000),                AtMost(1.3),   "2.1",  Bytes,     start::bytes,             "memory of an idle child"),
    row("bytes-absolute", Alone(100_000),                AtMost(580.0), "–",    Bytes,     start::bytes,             "memory of an idle child, absolute"),
    row("bytes-mailbox",  Tokio(100_000),                AtMost(2.2),   "14",   Bytes,     start::bytes_mailbox,     "memory of an idle child with an unused mailbox"),
    row("stop",           Tokio(100_000),                AtMost(1.2),   "4.8",  Nanos,     start::stop,              "ordered stop of 100,000 children, each"),
    row("stop-scale",     Itself(10_000, 1_000_000),     AtMost(1.5),   "–",    Nanos,     start::stop,              "ordered stop, one of 1,000,000 against one of 10,000"),
    row("restart-error",  Tokio(1),                      AtMost(1.8),   "2.5",  Nanos,     restart::error,           "restart after an error, p50"),
    row("restart-panic",  Tokio(1),                      AtMost(1.1),   "1.2",  Nanos,     restart::panic,           "restart after a panic, p50"),
    row("restart-scale",  Itself(1_000, 1_000_000),      AtMost(1.5),   "–",    Nanos,     restart::error,           "restart among 1,000,000 children against one among 1,000"),
    row("restart-window", Itself(0, 10_000),             AtMost(1.2),   "–",    Nanos,     restart::in_window,       "restart with 10,000 restarts in the window against none"),
    row("restarts-error", Tokio(10_000),                 AtLeast(0.8),  "0.5",  PerSecond, crowd::restarts_error,    "restarts of 10,000 children that fail 10 times, errors"),
    row("restarts-panic", Tokio(10_000),                 AtLeast(0.8),  "0.6",  PerSecond, crowd::restarts_panic,    "the same, panics"),
    row("one-for-all",    Tokio(10_000),                 AtMost(1.5),   "2.8",  Nanos,     crowd::one_for_all,       "one_for_all of 10,000 children, all back"),
    row("deep-build",     Tokio(1_000),                  AtMost(4.0),   "5.6",  Nanos,     trees::deep_build,        "chain of 1,000 supervisors, start"),
    row("deep-stop",      Tokio(1_000),                  AtMost(4.0),   "2.0",  Nanos,     trees::deep_stop,         "chain of 1,000 supervisors, stop"),
    row("wide-build",     Tokio(10_000),                 AtMost(2.5),   "7.0",  Nanos,     trees::wide_build,        "tree of 10 × 10 × 10 × 10, start"),
    row("wide-stop",      Tokio(10_000),                 AtMost(4.0),   "3.8",  Nanos,     trees::wide_stop,         "tree of 10 × 10 × 10 × 10, stop"),
    row("start-beside-loop", Itself(0, 1),               AtMost(2.0),   "1.0",  Nanos,     crowd::start_beside_loop, "start of a child beside a crash loop against none, p50"),
    row("message",        Tokio(500_000),                AtLeast(0.6),  "0.26", PerSecond, messages::send,           "messages to a child"),
    row("ask",            Tokio(50_000),                 AtMost(1.3),   "1.8",  Nanos,     messages::ask,            "question and answer, p50"),
    row("busy",           Alone(1_000_000),              AtMost(60.0),  "–",    Nanos,     busy::added,              "what busy time adds to a poll"),
    row("emit",           Tokio(500_000),                AtMost(2.0),   "–",    Nanos,     bus::emit,                "an emit to one handler, beside a raw mpsc send"),
    row("lookup",         Tokio(100_000),                AtMost(1.3),   "0.9",  Nanos,     lookup::by_path,          "lookup of one of 100,000 paths, 2 threads"),
    row("provide",        Itself(1_000, 100_000),        AtMost(2.0),   "–",    Nanos,     services::provide,        "a value provided by one of 100,000 children against one of 1,000"),
    row("service",        Itself(1_000, 100_000),        AtMost(2.0),   "–",    Nanos,     services::service,        "a service looked up by one of 100,000 children against one of 1,000"),
    row("every",          Tokio(100_000),                AtMost(1.5),   "–",    Nanos,     periodic::runs,           "a run of one of 100,000 periodic children, beside loops over `interval`"),
    row("bytes-every",    Tokio(100_000),                AtMost(2.0),   "–",    Bytes,     periodic::bytes,          "memory of an idle periodic child, beside a loop over `interval`"),
    row("snapshot",       Alone(100_000),                AtMost(150e6), "280 ms", Nanos,   snapshot::taken,          "snapshot of 100,000 children"),
    row("snapshot-hold",  Alone(100_000),                AtMost(1e6),   "280 ms", Nanos,   snapshot::longest_hold,   "snapshot of 100,000 children: longest hold of a loop"),
    row("reload",         Alone(10_000),                 AtMost(1e9),    "–",    Nanos,     reload::all,              "reload of a file with 10,000 changed policies"),
    row("reload-one",     Alone(10_000),                 AtMost(50e6),   "–",    Nanos,     reload::one,              "reload of such a file in which one policy has changed"),
    row("reload-hold",    Alone(10_000),                 AtMost(1e6),    "–",    Nanos,     reload::longest_hold,     "reload of 10,000 changed policies: longest hold of a loop"),
    row("console-look",   Alone(10_000),                 AtMost(1e9),    "–",    Nanos,     console::look,            "a look at the console: a snapshot of 10,000 children as JSON over HTTP"),
    row("console-work",   Itself(0, 1),                  AtLeast(0.97), "–",    PerSecond, console::work,            "messages to a child beside a console without a page against none"),
    row("console-storm",  Itself(0, 1),                  AtLeast(0.5),  "–",    PerSecond, console::storm,           "restarts of 10,000 children that fail 10 times, beside a console without a page against none"),
    row("hello-crates",   Alone(1),                      AtMost(42.0),  "19",   Count,     hello::crates,            "crates of the first program").rounds(1),
    row("hello-build",    Tokio(1),                      AtMost(3.0),   "1.9",  Nanos,     hello::build,             "release build of the first program, CPU time").rounds(3),
];

fn main() -> ExitCode {
    let find = |name: &str| ROWS.iter().find(|row| row.name == name).expect("a row of this bench");
    if answer(|name, side, n| vec![(find(name).work)(side, n)]) {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse(ROWS.iter().map(|row| row.name));
    let mut report = Report::default();
    for row in ROWS.iter().filter(|row| arguments.wants(row.name)) {
        eprintln!("measuring {}", row.name);
        report.add(row, row.measure(arguments.rounds));
    }
    println!("{}", if arguments.json { report.json() } else { report.text() });
    if let Some(file) = &arguments.table
        && let Err(error) = replace_between_markers(file, "budgets", &report.markdown())
    {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    if report.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
