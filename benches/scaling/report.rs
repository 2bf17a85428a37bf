//! The tables, as text, as Markdown and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::measure::{Arguments, By, Machine, Measured, Row, Spread};
use crate::table::{Layout, Table};

/// What was measured of a row, at each number.
type Columns = Vec<Result<Measured, String>>;

/// Printed as it grows, because all of it takes a while.
pub(crate) struct Report {
    machine: Machine,
    json: bool,
    file: Option<PathBuf>,
    tables: Vec<(&'static Table, Vec<(&'static Row, Columns)>)>,
}

impl Report {
    pub(crate) fn begin<Own>(machine: Machine, arguments: &Arguments<Own>) -> Self {
        let Arguments { json, table, .. } = arguments;
        if !json {
            println!("{machine}");
        }
        Self { machine, json: *json, file: table.clone(), tables: Vec::new() }
    }

    /// What is added from here on belongs to this one.
    pub(crate) fn table(&mut self, table: &'static Table) {
        self.tables.push((table, Vec::new()));
    }

    pub(crate) fn add(&mut self, row: &'static Row, columns: Columns) {
        let (table, rows) = self.tables.last_mut().expect("a table comes first");
        if !self.json {
            if rows.is_empty() {
                println!("\n{}\n{}", table.title, text(&head(table)));
            }
            lines(table, row, &columns).iter().for_each(|line| println!("{}", text(line)));
            remarks(&columns).iter().for_each(|remark| println!("  {remark}"));
        }
        rows.push((row, columns));
    }

    /// Writes what there is to write at the end, and returns whether everything was measured.
    pub(crate) fn end(mut self) -> bool {
        self.tables.retain(|(_, rows)| !rows.is_empty());
        if self.json {
            println!("{:#}", self.as_json());
        }
        if let Some(file) = &self.file {
            let written = fs::write(file, self.as_markdown());
            written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        self.tables
            .iter()
            .flat_map(|(_, rows)| rows)
            .flat_map(|(_, columns)| columns)
            .all(Result::is_ok)
    }

    fn as_markdown(&self) -> String {
        let mut all = String::new();
        for (table, rows) in &self.tables {
            let head = head(table);
            writeln!(all, "## {}\n\n{}\n\n{}", table.title, table.note, markdown(&head))
                .expect(FITS);
            let rule = head.iter().skip(1).fold("| --- |".to_owned(), |rule, _| rule + " ---: |");
            writeln!(all, "{rule}").expect(FITS);
            for line in rows.iter().flat_map(|(row, columns)| lines(table, row, columns)) {
                writeln!(all, "{}", markdown(&line)).expect(FITS);
            }
            all.push('\n');
        }
        writeln!(all, "Medians. Measured on {}.", self.machine).expect(FITS);
        all
    }

    fn as_json(&self) -> Value {
        let rows = self.tables.iter().flat_map(|(_, rows)| rows).map(|(row, columns)| {
            let columns: Vec<_> = columns.iter().map(column_as_json).collect();
            json!({ "row": row.name, "what": row.what, "columns": columns })
        });
        json!({
            "machine": self.machine.json(),
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

const FITS: &str = "a string takes all";

fn column_as_json(column: &Result<Measured, String>) -> Value {
    let measured = match column {
        Ok(measured) => measured,
        Err(error) => return json!({ "failed": error }),
    };
    let parts = measured.parts().map(|(index, part)| {
        let Spread { min, median, max } = measured.ours(index);
        json!({
            "part": part.what, "unit": part.unit.name(), "min": min, "median": median, "max": max,
        })
    });
    let rounds = measured.rounds.iter().map(|round| {
        json!({
            "figures": round.ours, "foreign": round.foreign, "pulse": round.pulse,
            "disturbed": round.disturbed.is_some(),
        })
    });
    json!({
        "n": measured.row.ours.n,
        "parts": parts.collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
        "left_out": measured.left_out.len(),
    })
}

// --- Lines ---------------------------------------------------------------------------------------

fn head(table: &Table) -> Vec<String> {
    let first = std::iter::once(String::new());
    match table.layout {
        Layout::Sizes(sizes) => first
            .chain(sizes.iter().map(|&size| thousands(size)))
            .chain(["last : first".to_owned()])
            .collect(),
        Layout::Rows => {
            first.chain(table.rows[0].parts.iter().map(|it| it.what.to_owned())).collect()
        }
        Layout::Parts => vec![String::new(), "median".to_owned()],
    }
}

fn lines(table: &Table, row: &Row, columns: &Columns) -> Vec<Vec<String>> {
    let shown = |column: &Result<Measured, String>, part: usize| match column {
        Ok(measured) => row.parts[part].unit.show(measured.ours(part).median),
        Err(_) => "failed".to_owned(),
    };
    let parts = 0..row.parts.len();
    match table.layout {
        Layout::Sizes(_) => parts
            .map(|part| {
                let name = format!("{}: {}", row.what, row.parts[part].what);
                let figures = columns.iter().map(|column| shown(column, part));
                let last_to_first = ratio(columns, part);
                std::iter::once(name).chain(figures).chain([last_to_first]).collect()
            })
            .collect(),
        Layout::Rows => {
            let figures = parts.map(|part| shown(&columns[0], part));
            vec![std::iter::once(row.what.to_owned()).chain(figures).collect()]
        }
        // There is one row, and the title says what it is.
        Layout::Parts => parts
            .map(|part| vec![row.parts[part].what.to_owned(), shown(&columns[0], part)])
            .collect(),
    }
}

fn ratio(columns: &Columns, part: usize) -> String {
    let (Some(Ok(first)), Some(Ok(last))) = (columns.first(), columns.last()) else {
        return "–".to_owned();
    };
    format!("{:.2}", last.ours(part).median / first.ours(part).median)
}

fn text(line: &[String]) -> String {
    let (name, figures) = line.split_first().expect("a line has a name");
    figures.iter().fold(format!("{name:<70}"), |text, figure| format!("{text} {figure:>12}"))
}

fn markdown(line: &[String]) -> String {
    format!("| {} |", line.join(" | "))
}

/// What there is to say beside the figures.
fn remarks(columns: &Columns) -> Vec<String> {
    let measured = || columns.iter().flatten();
    let disturbed: Vec<_> = measured().flat_map(Measured::disturbed).collect();
    let of: usize = measured().map(|column| column.rounds.len()).sum();
    let disturbed = (!disturbed.is_empty()).then(|| {
        let by = By::text(&disturbed);
        format!("! {} of {of} rounds were disturbed: {by}", disturbed.len())
    });
    let failed = columns.iter().filter_map(|column| column.as_ref().err().cloned());
    disturbed.into_iter().chain(failed).collect()
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}
