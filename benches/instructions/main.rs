//! How many instructions the hot paths take, compared with the figures in `figures.txt`.
//!
//! Callgrind counts them. Unlike time they are the same in every run, on a busy machine and in any
//! directory, within one per mille; that is left by the seeds of hash maps. So growth by a tenth
//! comes from the code, the compiler, the C library, or a processor of another kind.
//!
//! | | |
//! | --- | --- |
//! | `cargo bench --bench instructions` | counts, compares, and fails if something grew by more than a tenth |
//! | `… -- restart` | only what has this in its name |
//! | `… -- --write` | writes what it counts to `figures.txt` |
//!
//! Everything runs on one thread, with paused time, except what says `threads`. Fewer instructions are
//! not always less time: waiting for memory and for other threads isn't counted, and neither is what
//! the kernel does. Where the instructions go is in the profiles, named at the end:
//! `callgrind_annotate --inclusive=yes FILE`.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

mod calls;
mod children;
mod deadlines;
mod figures;
mod messages;
mod threads;
mod trees;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use self::figures::Figures;

/// Events in one run: so many that what happens only once is lost in them.
const EVENTS: u32 = 1000;

/// By how much a figure may change.
const TOLERANCE: f64 = 0.1;

const UPDATE: &str = "To accept it: cargo bench --bench instructions -- --write";

/// Something whose instructions are counted, with what is done before and after.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    /// What a figure is for, of which there are [`EVENTS`].
    event: &'static str,
    run: Run,
}

impl Scenario {
    const fn alone(name: &'static str, event: &'static str, run: fn()) -> Self {
        Self { name, event, run: Run::Alone(run) }
    }

    const fn threads(name: &'static str, event: &'static str, run: fn(u32)) -> Self {
        Self { name, event, run: Run::Threads(run) }
    }
}

#[derive(Clone, Copy)]
enum Run {
    /// On one thread. What [`counted`] runs is counted.
    Alone(fn()),
    /// On several, where nobody can say which of them does what. All that the process does is counted,
    /// for so many events and for twice as many: the difference is theirs.
    Threads(fn(u32)),
}

fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    if let [flag, name, events] = &args[..]
        && flag == "--count"
    {
        match scenarios().find(|it| it.name == name).expect("a scenario").run {
            Run::Alone(run) => run(),
            Run::Threads(run) => run(events.parse().expect("a number")),
        }
        return ExitCode::SUCCESS;
    }
    if !args.iter().any(|arg| arg == "--bench") {
        println!("nothing to test; `cargo bench --bench instructions` counts");
        return ExitCode::SUCCESS;
    }
    let write = args.iter().any(|arg| arg == "--write");
    // The figures are of one count, so all of them are written.
    let part = args.iter().find(|arg| !write && !arg.starts_with("--"));
    let part = part.map_or("", String::as_str);

    let (then, mut now) = (Figures::read(), Figures::new());
    if then.tools != now.tools {
        println!("then: {}\nnow:  {}\n", then.tools, now.tools);
    }
    println!("{:<22} {:>7} {:>7} {:>7}", "instructions", "then", "now", "ratio");
    let (mut grown, mut shrunk) = (false, false);
    for Scenario { name, event, run } in scenarios().filter(|it| it.name.contains(part)) {
        let count = count(name, run) / u64::from(EVENTS);
        now.counts.insert(name.to_owned(), count);
        let Some(&old) = then.counts.get(name) else {
            println!("{name:<22} {:>7} {count:>7} {:>7}   per {event}", "none", "");
            grown = true;
            continue;
        };
        let ratio = count as f64 / old as f64;
        println!("{name:<22} {old:>7} {count:>7} {ratio:>7.3}   per {event}");
        grown |= ratio > 1.0 + TOLERANCE;
        shrunk |= ratio < 1.0 - TOLERANCE;
    }
    println!("\nprofiles: {}", profile("*").display());
    if write {
        now.write();
    } else if grown {
        println!("FAILED: a figure is missing, or grew by more than a tenth. {UPDATE}");
        return ExitCode::FAILURE;
    } else if shrunk {
        println!("A figure shrank by more than a tenth, and could grow back unnoticed. {UPDATE}");
    }
    ExitCode::SUCCESS
}

fn scenarios() -> impl Iterator<Item = Scenario> {
    let groups = [
        children::SCENARIOS,
        trees::SCENARIOS,
        deadlines::SCENARIOS,
        messages::SCENARIOS,
        calls::SCENARIOS,
        threads::SCENARIOS,
    ];
    groups.into_iter().flatten().copied()
}

/// The instructions of [`EVENTS`] events.
fn count(scenario: &str, run: Run) -> u64 {
    match run {
        Run::Alone(_) => {
            let within = ["--collect-atstart=no", "--toggle-collect=instructions::count_within"];
            count_once(scenario, EVENTS, &within)
        }
        Run::Threads(_) => {
            count_once(scenario, 2 * EVENTS, &[]) - count_once(scenario, EVENTS, &[])
        }
    }
}

/// Runs this program once more, for one scenario.
fn count_once(scenario: &str, events: u32, collect: &[&str]) -> u64 {
    let profile = profile(scenario);
    let mut valgrind = Command::new("valgrind");
    // The environment lies on the stack, and moves everything.
    valgrind.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    valgrind.arg("--tool=callgrind").args(collect);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    valgrind.arg(env::current_exe().expect("this program"));
    let output = valgrind.args(["--count", scenario, &events.to_string()]).output();
    let output = output.expect("valgrind is installed");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario} failed:\n{told}");
    let text = fs::read_to_string(&profile).expect("valgrind has written it");
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let total = total.and_then(|total| total.parse().ok()).unwrap_or(0);
    assert!(total > 0, "{scenario}: nothing was counted:\n{told}");
    total
}

fn profile(scenario: &str) -> PathBuf {
    let name = scenario.replace([' ', ','], "-");
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("instructions-{name}.out"))
}

/// What the future and all tasks do until it is ready is counted.
fn counted<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    let (mut future, mut output) = (Some(future), None);
    count_within(&mut || output = future.take().map(|future| runtime.block_on(future)));
    output.expect("it was run")
}

/// Callgrind counts from the beginning of this function to its end, and knows it by its name.
#[inline(never)]
fn count_within(work: &mut dyn FnMut()) {
    work();
    // Something to do after the call, so that it isn't a jump.
    std::hint::black_box(());
}

/// One thread, whose time passes when all wait.
fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

/// Ready when everybody else has nothing to do.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}
