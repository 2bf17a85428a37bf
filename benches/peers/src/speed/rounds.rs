//! Everybody in turns, in rounds, and once more what others had disturbed.

use std::time::Duration;

use super::columns::Column;
use super::process::{self, End, LIMIT, Ran};
use super::work::Work;

/// What takes longer is done once, and not repeated.
const SLOW: Duration = Duration::from_secs(6);
/// How often a disturbed measurement is repeated.
const REPEATS: usize = 2;

/// What is measured, and how thoroughly.
pub struct Plan {
    pub works: Vec<Work>,
    pub rounds: usize,
    /// Takes disturbed measurements as they are.
    pub anyway: bool,
}

/// All measurements of one work on one column.
pub struct Cell {
    pub work: Work,
    pub column: &'static str,
    pub runs: Vec<Ran>,
    /// Not tried, because the smaller one had taken too long.
    pub skipped: bool,
}

/// What there is to say about all of it.
#[derive(Default)]
pub struct Disturbance {
    pub measurements: usize,
    /// Of these, how many were kept although they were disturbed.
    pub disturbed: usize,
    pub repeated: usize,
    /// The sum of what others had of the machine, over all that were kept.
    shares: f64,
}

impl Disturbance {
    pub fn share(&self) -> f64 {
        self.shares / self.measurements.max(1) as f64
    }
}

pub fn measure(columns: &[Column], plan: &Plan) -> (Vec<Cell>, Disturbance) {
    let mut cells: Vec<Cell> = Vec::new();
    for work in &plan.works {
        for column in columns.iter().filter(|column| (column.can)(*work)) {
            let (column, runs) = (column.name, Vec::new());
            cells.push(Cell { work: *work, column, runs, skipped: false });
        }
    }
    let mut disturbance = Disturbance::default();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        for index in 0..cells.len() {
            let Cell { work, column, .. } = cells[index];
            if !is_wanted(&cells, index) {
                cells[index].skipped = cells[index].runs.is_empty();
                continue;
            }
            let column = columns.iter().find(|it| it.name == column).expect("it has cells");
            let ran = undisturbed(column, work, plan.anyway, &mut disturbance);
            say(column, work, &ran);
            cells[index].runs.push(ran);
        }
    }
    (cells, disturbance)
}

/// Whether it is measured in this round.
fn is_wanted(cells: &[Cell], index: usize) -> bool {
    let Cell { work, column, runs, .. } = &cells[index];
    let smaller = cells.iter().find(|it| Some(it.work) == work.after() && it.column == *column);
    let is_quick = |ran: &Ran, limit| ran.end == End::Well && ran.took < limit;
    smaller.is_none_or(|smaller| smaller.runs.iter().all(|ran| is_quick(ran, LIMIT / 10)))
        && runs.iter().all(|ran| is_quick(ran, SLOW))
}

fn undisturbed(column: &Column, work: Work, anyway: bool, disturbance: &mut Disturbance) -> Ran {
    let share = |ran: &Ran| ran.foreign.map_or(0.0, |(share, _)| share);
    let is_disturbed = |ran: &Ran| ran.foreign.is_some_and(|(_, disturbed)| disturbed);
    let mut best = process::run(column.command(work));
    for _ in 0..REPEATS {
        if anyway || !is_disturbed(&best) || best.took > SLOW {
            break;
        }
        disturbance.repeated += 1;
        let again = process::run(column.command(work));
        if share(&again) < share(&best) {
            best = again;
        }
    }
    disturbance.measurements += 1;
    disturbance.disturbed += usize::from(is_disturbed(&best));
    disturbance.shares += share(&best);
    best
}

fn say(column: &Column, work: Work, ran: &Ran) {
    let figures: Vec<_> =
        ran.figures.iter().map(|(key, figure)| format!("{key} {figure:.0}")).collect();
    let share = ran.foreign.map_or(0.0, |(share, _)| share * 100.0);
    let (name, work, took) = (column.name, work.name(), ran.took.as_secs_f64());
    eprint!("{name} {work}: {} in {took:.1} s, others {share:.0} %", figures.join(", "));
    eprintln!("{}", if ran.end == End::Well { String::new() } else { format!("; {:?}", ran.end) });
}

impl Cell {
    /// The median of a figure, of undisturbed measurements if there are any.
    pub fn figure(&self, key: &str) -> Option<Median> {
        let of =
            |ran: &Ran| ran.figures.iter().find(|(it, _)| it == key).map(|(_, figure)| *figure);
        let is_clean = |ran: &&Ran| ran.foreign.is_none_or(|(_, disturbed)| !disturbed);
        let clean: Vec<_> = self.runs.iter().filter(is_clean).filter_map(of).collect();
        let disturbed = clean.is_empty();
        let mut figures = if disturbed { self.runs.iter().filter_map(of).collect() } else { clean };
        figures.sort_by(f64::total_cmp);
        let figure = *figures.get(figures.len() / 2)?;
        Some(Median { figure, of: figures.len(), disturbed })
    }
}

pub struct Median {
    pub figure: f64,
    /// Of how many measurements.
    pub of: usize,
    /// Whether all of these were.
    pub disturbed: bool,
}
