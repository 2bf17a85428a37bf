//! All columns in turns, in rounds.

use std::time::Duration;

use super::columns::Column;
use super::work::Work;
use crate::process::{self, End, Ran};

/// No measurement may take longer.
pub const LIMIT: Duration = Duration::from_secs(60);
/// A measurement that takes longer is done once.
const SLOW: Duration = Duration::from_secs(6);

/// All measurements of one work on one column.
pub struct Cell {
    pub work: &'static str,
    pub column: &'static str,
    pub runs: Vec<Ran>,
}

impl Cell {
    /// The median of a figure, and the number of measurements that have it.
    pub fn median(&self, key: &str) -> Option<(f64, usize)> {
        let figure = |ran: &Ran| {
            let line = ran.printed.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse::<f64>().ok()
        };
        let mut figures: Vec<_> = self.runs.iter().filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        Some((*figures.get(figures.len() / 2)?, figures.len()))
    }

    fn is_quick(&self, limit: Duration) -> bool {
        self.runs.iter().all(|ran| ran.end == End::Well && ran.took < limit)
    }
}

pub fn measure(columns: &[Column], works: &[&'static Work], rounds: usize) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for work in works {
        let able = columns.iter().filter(|column| column.can(work.name));
        cells.extend(able.map(|it| Cell { work: work.name, column: it.name, runs: Vec::new() }));
    }
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for index in 0..cells.len() {
            let Cell { work, column, .. } = cells[index];
            if !is_wanted(&cells, index) {
                continue;
            }
            let column = columns.iter().find(|it| it.name == column).expect("it has cells");
            let ran = process::run(&mut column.command(work), LIMIT);
            let figures = ran.printed.replace('\n', ", ");
            eprintln!("{} {work}: {figures}{:.1?}, {:?}", column.name, ran.took, ran.end);
            cells[index].runs.push(ran);
        }
    }
    cells
}

/// A million children only where a hundred thousand took a tenth of the limit.
fn is_wanted(cells: &[Cell], index: usize) -> bool {
    let Cell { work, column, .. } = cells[index];
    let smaller = |it: &&Cell| it.column == column && it.work == "idle-100000";
    let smaller = cells.iter().filter(|_| work == "idle-1000000").find(smaller);
    cells[index].is_quick(SLOW) && smaller.is_none_or(|smaller| smaller.is_quick(LIMIT / 10))
}
