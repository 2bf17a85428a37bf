//! The tables of the book's page.

use std::fmt::Write as _;

use super::columns::Column;
use super::rounds::{Cell, LIMIT};
use super::runs::WORKERS;
use super::work::{Figure, GROUPS, Work};
use crate::book::{self, Table};
use crate::machine;
use crate::process::End;

/// The column that the ratios are about.
const BASE: &str = "tokio";

/// # Errors
///
/// The page can't be written.
pub fn publish(
    columns: &[Column],
    missing: &[String],
    cells: &[Cell],
    rounds: usize,
    write: bool,
) -> Result<(), String> {
    let measurements: usize = cells.iter().map(|cell| cell.runs.len()).sum();
    let versions: Vec<_> = columns.iter().map(|column| column.versions.as_str()).collect();
    let mut tables = format!(
        "Measured on {}, {:.0} GiB, {}, release, thin LTO, {WORKERS} worker threads, in {rounds} \
         rounds with {measurements} measurements.\n\nVersions: {}.\n\n",
        machine::processor(),
        machine::kib("/proc/meminfo", "MemTotal") as f64 / 1024.0 / 1024.0,
        machine::rustc(),
        versions.join("; "),
    );
    for why in missing {
        write!(tables, "Not on this machine: {why}.\n\n").expect("a string");
    }
    for (title, works) in GROUPS {
        if let Some(lines) = table(works, columns, cells, rounds) {
            write!(tables, "## {title}\n\n{lines}\n").expect("a string");
        }
    }
    tables += &failures(cells);
    book::publish("peer-costs.md", "costs", &tables, write)
}

fn table(works: &[Work], columns: &[Column], cells: &[Cell], rounds: usize) -> Option<String> {
    let has = |column: &Column, work: &Work| {
        cells.iter().any(|cell| cell.column == column.name && cell.work == work.name)
    };
    let able = columns.iter().filter(|column| works.iter().any(|work| has(column, work)));
    let able: Vec<_> = able.map(|column| column.name).collect();
    let mut table = Table::new(&[&["", ""], &able[..]].concat());
    for work in works.iter().filter(|work| columns.iter().any(|column| has(column, work))) {
        for figure in work.figures {
            let names = [figure.1, figure.2].map(str::to_owned).into_iter();
            let cells = able.iter().map(|column| cell(cells, work, column, figure, rounds));
            table.push(names.chain(cells).collect());
        }
    }
    (!able.is_empty()).then(|| table.markdown())
}

fn cell(cells: &[Cell], work: &Work, column: &str, figure: &Figure, rounds: usize) -> String {
    let of = |name| cells.iter().find(|cell| cell.work == work.name && cell.column == name);
    let Some(cell) = of(column) else { return "–".into() };
    let Some((median, count)) = cell.median(figure.0) else {
        return match cell.runs.last().map(|ran| &ran.end) {
            None => "…".into(),
            Some(End::OverTime) => format!("> {} s", LIMIT.as_secs()),
            Some(_) => "died".into(),
        };
    };
    let mut text = number(median);
    if let Some((base, _)) = of(BASE).and_then(|cell| cell.median(figure.0))
        && column != BASE
    {
        let ratio = median / base;
        let ratio = if ratio < 9.95 { format!("{ratio:.1}") } else { number(ratio.round()) };
        write!(text, " ({ratio})").expect("a string");
    }
    if count == 1 && rounds > 1 {
        text.push('¹');
    }
    text
}

/// Three significant digits, in groups of three.
fn number(figure: f64) -> String {
    if figure < 9.995 {
        return format!("{figure:.2}");
    }
    if figure < 99.95 && figure != figure.trunc() {
        return format!("{figure:.1}");
    }
    let scale = 10_f64.powf((figure.log10().floor() - 2.0).max(0.0));
    let digits = format!("{:.0}", (figure / scale).round() * scale);
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

fn failures(cells: &[Cell]) -> String {
    let mut text = String::new();
    for Cell { work, column, runs } in cells {
        let failed: Vec<_> = runs.iter().filter(|ran| ran.end != End::Well).collect();
        let Some(first) = failed.first() else { continue };
        let (count, of, end) = (failed.len(), runs.len(), &first.end);
        writeln!(text, "* {column}, `{work}`: {count} of {of} failed, {end:?}").expect("a string");
    }
    if text.is_empty() { text } else { format!("\n## What went wrong\n\n{text}") }
}
