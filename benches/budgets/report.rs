//! The table with its verdicts, as text, as Markdown and as JSON.

use serde_json::json;

use crate::measure::{Table, machine};
use crate::row::{Base, Measured, Row};

#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(&'static Row, Result<Measured, String>)>,
}

impl Report {
    pub(crate) fn add(&mut self, row: &'static Row, measured: Result<Measured, String>) {
        self.rows.push((row, measured));
    }

    fn met(&self) -> usize {
        let met =
            |measured: &Result<Measured, String>| measured.as_ref().is_ok_and(Measured::is_met);
        self.rows.iter().filter(|(_, measured)| met(measured)).count()
    }

    pub(crate) fn all_met(&self) -> bool {
        self.met() == self.rows.len()
    }

    pub(crate) fn text(&self) -> String {
        let failed = self.rows.iter().filter_map(|(row, measured)| {
            Some(format!("{} failed: {}\n", row.name, measured.as_ref().err()?))
        });
        let failed: String = failed.collect();
        format!("{}\n{failed}{}", self.table(|row| row.name), self.summary())
    }

    pub(crate) fn markdown(&self) -> String {
        format!("{}\n{}\n", self.table(|row| row.what).markdown(), self.summary())
    }

    fn summary(&self) -> String {
        let (met, of) = (self.met(), self.rows.len());
        let legend = "*: verger itself, with a smaller number";
        format!("{met} of {of} budgets met. {legend}. Measured on {}.", machine())
    }

    fn table(&self, name: impl Fn(&Row) -> &'static str) -> Table {
        let head =
            ["", "tokio", "verger", "ratio (min–median–max)", "budget", "best peer", "verdict"];
        let mut table = Table::new(&head);
        for (row, measured) in &self.rows {
            let show = |figure| row.unit.show(figure);
            let plain = |figure: f64| figure.to_string();
            let mut line = vec![name(row).to_owned()];
            line.extend(match measured {
                Err(_) => ["–", "–", "–"].map(str::to_owned),
                Ok(measured) => {
                    let ours = measured.ours();
                    let mark = if matches!(row.base, Base::Itself(..)) { "*" } else { "" };
                    let base = measured.base().map(|base| format!("{}{mark}", show(base.median)));
                    let base = base.unwrap_or_else(|| "–".to_owned());
                    let ratio = measured.ratio();
                    let ratio = ratio.map(|ratio| ratio.show(|figure| format!("{figure:.2}")));
                    [base, show(ours.median), ratio.unwrap_or_else(|| ours.show(show))]
                }
            });
            line.push(match row.base {
                Base::Alone(_) => row.limit.show(show),
                Base::Tokio(_) | Base::Itself(..) => row.limit.show(plain),
            });
            line.push(row.best_peer.to_owned());
            line.push(match measured {
                Err(_) => "failed".to_owned(),
                Ok(measured) if measured.is_met() => "met".to_owned(),
                Ok(_) => "NOT MET".to_owned(),
            });
            table.push(line);
        }
        table
    }

    pub(crate) fn json(&self) -> String {
        let rows = self.rows.iter().map(|(row, measured)| match measured {
            Err(error) => json!({ "row": row.name, "failed": error }),
            Ok(measured) => json!({
                "row": row.name,
                "what": row.what,
                "unit": format!("{:?}", row.unit),
                "base": measured.base,
                "verger": measured.ours,
                "value": measured.value(),
                "limit": row.limit.show(|limit| limit.to_string()),
                "met": measured.is_met(),
            }),
        });
        let rows: Vec<_> = rows.collect();
        format!("{:#}", json!({ "machine": machine(), "rows": rows, "met": self.met() }))
    }
}
