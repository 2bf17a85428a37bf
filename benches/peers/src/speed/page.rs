//! The page of the book: a table for each group, and what there is to say about each column.

use std::fmt::{Arguments, Write as _};
use std::fs;

use super::columns::Column;
use super::machine;
use super::process::{End, LIMIT};
use super::rounds::{Cell, Disturbance, Plan};
use super::runs::WORKERS;
use super::work::{Figure, Group, Work};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/src/peer-costs.md");

const INTRODUCTION: &str = "\
# What the peers cost

The same work, given to verger, to other crates that supervise tasks or actors on tokio, to tokio by hand, and to two that
aren't Rust's: what [the peers](peers.md) do is one page, and this is what they cost. Each measurement has a process of its
own; all take turns, in rounds, and a figure is the median over the rounds. In parentheses: how many times what tokio by hand
needs. All figures are costs, so less is better.

";

const HOW: &str = "\
* *start*: From the first line that describes the tree to the first instruction of the last child. Children are idle.
* *memory*: What the peak of the resident set has grown by meanwhile, for each child.
* *stop*: From the call until it has returned and the last child is gone.
* *one restart*: From the failure to the first instruction of the replacement, one after another, p50.
* *10,000 fail*: All at once, and each again as soon as it is back, until each has failed ten times; time for each restart.
* *one_for_all*: One of 10,000 children fails; until all have started again.
* *add a child*: To a supervisor of 10,000, from the call to its first instruction, p50; then while one of them fails whenever
  it is started.
* *1,000 deep*, *10 × 10 × 10 × 10*: Supervisors below each other with a single child, or 1,111 of them with 10,000 children.
* *message*: From one task to one child, a million in a row, for each. *question*: one after the other, p50.
* *lookup*: 100,000 names, two threads, for each. In verger, it is supervisors that have a path to be found by; by hand, a
  `DashMap` has a sender to each of as many tasks.

";

const AGAIN: &str = "\
The programs are part of `benches/peers`, a package of its own. This runs them all, and writes this page anew:

```sh
cargo run --release --manifest-path benches/peers/Cargo.toml -- speed --write --rounds 3
```

It takes about ten minutes and, for a million actors, 9 GiB of memory. `speed --only restart,deep` measures a part and prints
it; `--rounds 1` is quicker and rougher. A measurement during which other programs had more than 8 % of the machine is repeated, unless `--anyway` is said. Erlang/OTP
and Go suture are measured where `erl` and `erlc`, or `go` and the Debian package `golang-github-thejerf-suture-dev`, are
installed.
";

/// The whole page, of what was measured.
pub fn page(
    columns: &[Column],
    missing: &[String],
    cells: &[Cell],
    disturbance: &Disturbance,
    plan: &Plan,
) -> String {
    let mut page = String::from(INTRODUCTION);
    line(
        &mut page,
        format_args!("Measured on {}. {WORKERS} worker threads each.", machine::here()),
    );
    rounds(&mut page, disturbance, plan);
    legend(&mut page);
    for group in Group::ALL {
        table(&mut page, group, columns, cells, plan);
    }
    page.push_str("## What is measured\n\n");
    page.push_str(HOW);
    page.push_str("## How each is driven\n\n");
    for column in columns {
        line(&mut page, format_args!("* **{}**: {}", column.versions, column.note));
    }
    for why in missing {
        line(&mut page, format_args!("* Not on this machine: {why}"));
    }
    wrong(&mut page, cells);
    page.push_str("\n## Run it again\n\n");
    page.push_str(AGAIN);
    page
}

/// Writes the page into the book.
pub fn write(page: &str) {
    fs::write(PAGE, page).expect("the book is beside this package");
}

fn rounds(page: &mut String, disturbance: &Disturbance, plan: &Plan) {
    let Disturbance { measurements, disturbed, repeated, .. } = disturbance;
    let share = disturbance.share() * 100.0;
    line(
        page,
        format_args!(
            "Rounds: {}, measurements: {measurements}. Other programs had {share:.1} % of the machine on average; \
             measurements repeated for that: {repeated}, kept although disturbed: {disturbed}.\n",
            plan.rounds
        ),
    );
}

fn legend(page: &mut String) {
    let limit = LIMIT.as_secs();
    line(
        page,
        format_args!(
            "*–*: it can't, or doesn't claim to. *> {limit} s*: it had not ended by then. *…*: not tried, because a tenth of it had \
             taken too long.\n*died*: the process ended by itself. *¹*: a single measurement. *~*: disturbed ones only.\n"
        ),
    );
}

fn table(page: &mut String, group: Group, columns: &[Column], cells: &[Cell], plan: &Plan) {
    let works: Vec<_> = group.works().iter().filter(|work| plan.works.contains(work)).collect();
    if works.is_empty() {
        return;
    }
    let able: Vec<_> =
        columns.iter().filter(|column| works.iter().any(|work| (column.can)(**work))).collect();
    line(page, format_args!("## {}\n", group.title()));
    let names: String = able.iter().map(|column| format!(" {} |", column.name)).collect();
    line(page, format_args!("| | |{names}\n|{}", " --- |".repeat(able.len() + 2)));
    for work in works {
        for figure in work.figures() {
            let row: String = able
                .iter()
                .map(|column| format!(" {} |", text(cells, *work, column, figure, plan)))
                .collect();
            line(page, format_args!("| {} | {} |{row}", figure.label, figure.unit));
        }
    }
    page.push('\n');
}

/// What stands in a cell.
fn text(cells: &[Cell], work: Work, column: &Column, figure: &Figure, plan: &Plan) -> String {
    let of = |name| cells.iter().find(|cell| cell.work == work && cell.column == name);
    let Some(cell) = of(column.name) else { return "–".into() };
    if cell.skipped {
        return "…".into();
    }
    let Some(median) = cell.figure(figure.key) else {
        return match cell.runs.last().map(|ran| &ran.end) {
            Some(End::OverTime) => format!("> {} s", LIMIT.as_secs()),
            _ => "died".into(),
        };
    };
    let mut text = number(median.figure);
    if let Some(by_hand) = of("by hand").and_then(|cell| cell.figure(figure.key))
        && column.name != "by hand"
    {
        write!(text, " ({})", ratio(median.figure / by_hand.figure)).expect("strings take all");
    }
    if median.of == 1 && plan.rounds > 1 {
        text.push('¹');
    }
    if median.disturbed { format!("~{text}") } else { text }
}

/// Three digits, more of them only where they are zeros anyway, in groups of three.
fn number(figure: f64) -> String {
    match figure {
        figure if figure < 9.995 => format!("{figure:.2}"),
        figure if figure < 99.95 => format!("{figure:.1}"),
        figure => {
            let scale = 10_f64.powf((figure.log10().floor() - 2.0).max(0.0));
            let digits = format!("{:.0}", (figure / scale).round() * scale);
            let from_the_end = digits.chars().rev().enumerate();
            let grouped = from_the_end.flat_map(|(at, digit)| {
                [(at > 0 && at % 3 == 0).then_some(','), Some(digit)].into_iter().flatten()
            });
            grouped.collect::<Vec<_>>().into_iter().rev().collect()
        }
    }
}

fn ratio(times: f64) -> String {
    if times < 9.95 { format!("{times:.1}") } else { number(times.round()).replace(".0", "") }
}

/// What didn't end well, if anything.
fn wrong(page: &mut String, cells: &[Cell]) {
    let mut wrong = String::new();
    for cell in cells {
        let bad: Vec<_> = cell.runs.iter().filter(|ran| ran.end != End::Well).collect();
        let Some(first) = bad.first() else { continue };
        let how = match &first.end {
            End::Died(status) => format!("ended with {status}"),
            _ => format!("didn't end in {} s", LIMIT.as_secs()),
        };
        let (column, work, of) = (cell.column, cell.work.name(), cell.runs.len());
        line(&mut wrong, format_args!("* {column}, `{work}`: {} of {of} {how}.", bad.len()));
    }
    if !wrong.is_empty() {
        write!(page, "\n## What went wrong\n\n{wrong}").expect("strings take all");
    }
}

fn line(page: &mut String, line: Arguments<'_>) {
    writeln!(page, "{line}").expect("strings take all");
}
