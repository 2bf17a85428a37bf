//! The table, as text, as Markdown and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::measure::{Arguments, By, Machine, Measured, Part, Row, Spread};

pub(crate) struct Table {
    machine: Machine,
    json: bool,
    file: Option<PathBuf>,
    rows: Vec<(&'static Row, Result<Measured, String>)>,
}

impl Table {
    pub(crate) fn begin<Own>(machine: Machine, arguments: &Arguments<Own>) -> Self {
        let Arguments { json, table, .. } = arguments;
        let table = Self { machine, json: *json, file: table.clone(), rows: Vec::new() };
        if !table.json {
            println!("{}\n", table.machine);
            let ratio = "ratio (min–median–max)";
            println!("{:<28} {:>9} {:>9}   {ratio:<23} {:<10}", "", "raw", "verger", "budget");
        }
        table
    }

    pub(crate) fn add(&mut self, row: &'static Row, measured: Result<Measured, String>) {
        if !self.json {
            match &measured {
                Ok(measured) => Line::all(measured).for_each(|line| println!("{}", line.text())),
                Err(error) => println!("{:<28} FAILED: {error}", row.name),
            }
            if let Some(remark) = measured.as_ref().ok().and_then(remark) {
                println!("{:<28} {remark}", "");
            }
        }
        self.rows.push((row, measured));
    }

    /// Prints what there is to say at the end, and returns whether every budget is met.
    pub(crate) fn end(self) -> bool {
        let with_budget = self.rows.iter().filter(|(row, _)| row.has_budget());
        let met = |measured: &Result<Measured, String>| {
            measured.as_ref().is_ok_and(|measured| measured.is_met() == Some(true))
        };
        let (of, met) = with_budget
            .fold((0, 0), |(of, so_far), (_, it)| (of + 1, so_far + usize::from(met(it))));
        if self.json {
            println!("{:#}", self.as_json(met, of));
        } else {
            if self.rows.iter().flat_map(|(_, it)| it).any(Measured::is_blind) {
                println!(
                    "\nNo /proc/stat here: whether other programs disturbed this isn't known."
                );
            }
            if self.rows.iter().any(|(row, _)| row.is_against_itself()) {
                println!(
                    "\n* verger itself: with fewer children, no restart in its window, no loop"
                );
            }
            println!("\nbudgets: {met} of {of} met");
        }
        if let Some(file) = &self.file {
            let text = self.as_markdown(met, of);
            fs::write(file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        met == of
    }

    fn as_json(&self, met: usize, of: usize) -> Value {
        let rows = self.rows.iter().map(|(row, measured)| match measured {
            Ok(measured) => row_as_json(measured),
            Err(error) => json!({ "row": row.name, "failed": error }),
        });
        json!({
            "machine": self.machine.json(),
            "rows": rows.collect::<Vec<_>>(),
            "met": met,
            "of": of,
        })
    }

    fn as_markdown(&self, met: usize, of: usize) -> String {
        let mut text = String::from(
            "| | raw | verger | ratio (min–median–max) | budget | |\n\
             | --- | ---: | ---: | --- | --- | --- |\n",
        );
        for (row, measured) in &self.rows {
            match measured {
                Ok(measured) => {
                    Line::all(measured).for_each(|line| text.push_str(&line.markdown(row)));
                }
                Err(_) => writeln!(text, "| {} | | | | | failed |", row.what).expect("a string"),
            }
        }
        writeln!(text, "\n{met} of {of} budgets met. Measured on {}.", self.machine)
            .expect("a string takes all");
        text
    }
}

fn row_as_json(measured: &Measured) -> Value {
    let parts = measured.parts().map(|(part, it)| {
        let spread = |spread: Option<Spread>| {
            spread.map(
                |Spread { min, median, max }| json!({ "min": min, "median": median, "max": max }),
            )
        };
        json!({
            "part": it.what,
            "unit": it.unit.name(),
            "raw": spread(measured.base(part)),
            "verger": spread(Some(measured.ours(part))),
            "ratio": spread(measured.ratio(part)),
            "budget": it.budget.map(|budget| budget.text(|number| number.to_string())),
            "met": measured.is_part_met(part),
        })
    });
    let side = |side: crate::measure::Side| json!({ "who": side.who.name(), "n": side.n });
    let rounds = measured.rounds.iter().map(|round| {
        json!({
            "base": round.base,
            "ours": round.ours,
            "foreign": round.foreign,
            "pulse": round.pulse,
            "disturbed": round.disturbed.is_some(),
        })
    });
    json!({
        "row": measured.row.name,
        "what": measured.row.what,
        "base": measured.row.base.map(side),
        "ours": side(measured.row.ours),
        "parts": parts.collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
        "left_out": measured.left_out.len(),
        "met": measured.is_met(),
    })
}

/// What there is to say of a row beside its figures.
fn remark(measured: &Measured) -> Option<String> {
    let (disturbed, of) = (measured.disturbed(), measured.rounds.len());
    let left_out = &measured.left_out;
    let [kept, out] = [disturbed.len(), left_out.len()];
    match (kept, out) {
        (0, 0) => None,
        (0, _) => {
            Some(format!("{of} rounds; {out} disturbed are left out: {}", By::text(left_out)))
        }
        (_, 0) => Some(format!("! {kept} of {of} rounds were disturbed: {}", By::text(&disturbed))),
        _ => Some(format!(
            "! {kept} of {of} rounds were disturbed, and {out} more are left out: {}",
            By::text(&[&disturbed[..], left_out].concat())
        )),
    }
}

/// One part of a row.
struct Line<'a> {
    name: String,
    part: &'a Part,
    base: String,
    ours: String,
    ratio: String,
    budget: String,
    met: &'static str,
}

impl<'a> Line<'a> {
    fn all(measured: &'a Measured) -> impl Iterator<Item = Self> {
        measured.parts().map(|(index, part)| {
            let show = |figure| part.unit.show(figure);
            let ratio = measured.ratio(index);
            let of_ratio = |figure: f64| format!("{figure:.2}");
            let plain = |figure: f64| figure.to_string();
            let ours = measured.ours(index);
            Self {
                name: format!("{} {}", measured.row.name, part.what).trim_end().to_owned(),
                part,
                base: measured.base(index).map_or_else(
                    || "–".to_owned(),
                    |it| {
                        let itself = measured.row.is_against_itself();
                        format!("{}{}", show(it.median), if itself { "*" } else { "" })
                    },
                ),
                ours: show(ours.median),
                ratio: ratio.map_or_else(|| ours.text(show), |it| it.text(of_ratio)),
                budget: part.budget.map_or_else(String::new, |budget| match ratio {
                    Some(_) => budget.text(plain),
                    None => budget.text(show),
                }),
                met: match measured.is_part_met(index) {
                    None => "",
                    Some(true) => "met",
                    Some(false) => "NOT MET",
                },
            }
        })
    }

    fn text(&self) -> String {
        let Self { name, base, ours, ratio, budget, met, .. } = self;
        format!("{name:<28} {base:>9} {ours:>9}   {ratio:<23} {budget:<10} {met}")
    }

    fn markdown(&self, row: &Row) -> String {
        let Self { base, ours, ratio, budget, met, .. } = self;
        let of = if self.part.what.is_empty() { "" } else { ": " };
        let what = format!("{}{of}{}", row.what, self.part.what);
        format!("| {what} | {base} | {ours} | {ratio} | {budget} | {met} |\n")
    }
}
