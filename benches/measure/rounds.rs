//! Rounds: both sides in turns, and once more if something had disturbed them.

use std::time::{Duration, Instant};

use super::figures::{Spread, Unit};
use super::load::{Load, MOST_FOREIGN};
use super::process;
use super::pulse::{Beat, MOST_SLOW, Pulse};
use super::row::{Part, Row, Side, Work};

/// What disturbances may take of a row's time: twelve minutes are then enough for all rows.
const PATIENCE: Duration = Duration::from_secs(8);
/// And this besides if it is close to its budget, where disturbances would decide whether it is kept.
const MORE: Duration = Duration::from_secs(30);
/// How much of that a round may wait until the machine is fast. It would only be repeated.
const WAIT: Duration = Duration::from_secs(1);

/// A row is measured in so many parts at least.
const PARTS: usize = 5;

/// How thoroughly it is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Instead of what the rows say.
    pub(crate) rounds: Option<usize>,
    /// Takes disturbed rounds as they are.
    pub(crate) anyway: bool,
}

/// The figures of one round, for each part.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Empty if the row has no base.
    pub(crate) base: Vec<f64>,
    pub(crate) ours: Vec<f64>,
    /// What others had of the machine; `None` if nobody tells it.
    pub(crate) foreign: Option<f64>,
    /// How long the slowest pulses took, against the best.
    pub(crate) pulse: Beat,
    pub(crate) disturbed: Option<By>,
}

/// What disturbed a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Other programs, or other machines on the same processors.
    Programs,
    /// Memory that was slow without that.
    Memory,
    /// Cores that somebody else worked on at the same time.
    Neighbours,
}

impl By {
    /// Of so many rounds: `2 by other programs, 1 by slow memory`.
    pub(crate) fn text(rounds: &[Self]) -> String {
        let names = [
            (Self::Programs, "other programs"),
            (Self::Memory, "slow memory"),
            (Self::Neighbours, "shared cores"),
        ];
        let texts = names.map(|(by, name)| {
            let rounds = rounds.iter().filter(|it| **it == by).count();
            (rounds > 0).then(|| format!("{rounds} by {name}"))
        });
        texts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Round {
    /// At most 1 if it is not disturbed.
    fn disturbance(&self) -> f64 {
        let foreign = self.foreign.unwrap_or(0.0) / MOST_FOREIGN;
        foreign.max((self.pulse.slowness() - 1.0) / (MOST_SLOW - 1.0))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) rounds: Vec<Round>,
    /// What disturbed the rounds that don't count.
    pub(crate) left_out: Vec<By>,
}

/// A row as far as it has been measured.
struct Series {
    row: Row,
    wanted: usize,
    good: Vec<Round>,
    disturbed: Vec<Round>,
    /// What disturbances may still take of its time.
    patience: Duration,
    /// What they may take besides, once, if it is close to its budget.
    more: Option<Duration>,
    /// What it came to, when nothing is left to be measured.
    end: Option<Result<Measured, String>>,
}

impl Series {
    fn new(row: &Row, plan: Plan) -> Self {
        Self {
            row: *row,
            wanted: plan.rounds.unwrap_or(row.rounds).max(1),
            good: Vec::new(),
            disturbed: Vec::new(),
            patience: if plan.anyway { Duration::ZERO } else { PATIENCE },
            more: (!plan.anyway).then_some(MORE),
            end: None,
        }
    }

    /// Disturbed rounds are repeated for a while, and for longer if the row is close to its budget.
    fn add(&mut self, round: Round, anyway: bool) {
        if anyway || round.disturbed.is_none() {
            self.good.push(round);
        } else {
            self.disturbed.push(round);
        }
        let calm = self.good.len() == self.wanted;
        if calm || (self.number() >= self.wanted && self.patience.is_zero()) {
            let so_far = Measured::of(&self.row, self.wanted, &self.good, &self.disturbed);
            match self.more.take().filter(|_| !calm && so_far.is_close()) {
                Some(more) => self.patience = more,
                None => self.end = Some(Ok(so_far)),
            }
        }
    }

    /// How many rounds there were.
    fn number(&self) -> usize {
        self.good.len() + self.disturbed.len()
    }
}

/// Measures rows, by turns.
pub(crate) struct Rounds {
    plan: Plan,
    pulse: Pulse,
}

impl Rounds {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, pulse: Pulse::new() }
    }

    /// Measures one row.
    ///
    /// # Errors
    ///
    /// What a process said that could not do its work.
    pub(crate) fn measure(&mut self, row: &Row) -> Result<Measured, String> {
        self.measure_all([row], |_| ()).remove(0)
    }

    /// Measures several, each in some [parts](PARTS), by turns: neighbours stay for a minute or for ten, and
    /// are not to have all rounds of one row and none of another. `told` hears how many are done.
    pub(crate) fn measure_all<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Row>,
        told: impl Fn(usize),
    ) -> Vec<Result<Measured, String>> {
        let mut all: Vec<_> = rows.into_iter().map(|row| Series::new(row, self.plan)).collect();
        let mut done = 0;
        while done < all.len() {
            for series in all.iter_mut().filter(|series| series.end.is_none()) {
                for _ in 0..series.wanted.div_ceil(PARTS) {
                    self.go_on(series);
                    if series.end.is_some() {
                        done += 1;
                        told(done);
                        break;
                    }
                }
            }
        }
        all.into_iter().filter_map(|series| series.end).collect()
    }

    /// One more round.
    fn go_on(&mut self, series: &mut Series) {
        let began = Instant::now();
        let (row, number) = (series.row, series.number());
        let wait = if is_timed(&row) { series.patience.min(WAIT) } else { Duration::ZERO };
        let pulse = self.pulse.calm(wait);
        let waited = began.elapsed();
        match self.round(&row, number % 2 == 1, pulse) {
            Ok(round) => {
                let lost = if number < series.wanted { waited } else { began.elapsed() };
                series.patience = series.patience.saturating_sub(lost);
                series.add(round, self.plan.anyway);
            }
            Err(error) => series.end = Some(Err(error)),
        }
    }

    /// There and back, so that neither side is always the first. A pulse comes before each and after
    /// it, which leaves the same in the caches for both.
    fn round(&mut self, row: &Row, ours_first: bool, pulse: Beat) -> Result<Round, String> {
        let before = Load::now();
        let mut slowest = pulse;
        let mut figures = |side: Option<Side>| {
            let figures = side.map_or(Ok(Vec::new()), |side| process::measure(row, side));
            slowest = slowest.max(self.pulse.beat());
            figures
        };
        let (base, ours) = if let Work::BothSides(_) = row.work {
            let both = process::measure_both(row)?;
            slowest = slowest.max(self.pulse.beat());
            both
        } else if ours_first {
            let ours = figures(Some(row.ours))?;
            (figures(row.base)?, ours)
        } else {
            (figures(row.base)?, figures(Some(row.ours))?)
        };
        let foreign = before.zip(Load::now()).map(|(before, now)| before.foreign(now));
        let busy = foreign.is_some_and(|(_, disturbed)| disturbed);
        // What is counted is the same whatever else runs.
        let disturbed = if busy && !row.parts.iter().all(|part| part.unit == Unit::Count) {
            Some(By::Programs)
        } else if slowest.memory > MOST_SLOW && is_timed(row) {
            Some(By::Memory)
        } else if slowest.cores > MOST_SLOW && is_timed(row) {
            Some(By::Neighbours)
        } else {
            None
        };
        let foreign = foreign.map(|(share, _)| share);
        Ok(Round { base, ours, foreign, pulse: slowest, disturbed })
    }
}

/// So many rounds do that nothing has disturbed, where the machine isn't calm for as many as wanted.
fn enough(wanted: usize) -> usize {
    wanted.div_ceil(3).max(5).min(wanted)
}

/// Whether it depends on how fast the machine is.
fn is_timed(row: &Row) -> bool {
    row.parts.iter().any(|part| matches!(part.unit, Unit::Nanos | Unit::PerSecond))
}

impl Measured {
    /// The rounds that were not disturbed, if these are enough; else as many as wanted, the least disturbed.
    fn of(row: &Row, wanted: usize, good: &[Round], disturbed: &[Round]) -> Self {
        let more = if good.len() < enough(wanted) { wanted - good.len() } else { 0 };
        let mut disturbed = disturbed.to_vec();
        disturbed.sort_by(|a, b| a.disturbance().total_cmp(&b.disturbance()));
        let left_out = disturbed.split_off(more);
        let left_out = left_out.into_iter().filter_map(|round| round.disturbed).collect();
        Self { row: *row, rounds: [good, &disturbed].concat(), left_out }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &'static Part)> {
        self.row.parts.iter().enumerate()
    }

    /// What disturbed rounds that had to do.
    pub(crate) fn disturbed(&self) -> Vec<By> {
        self.rounds.iter().filter_map(|round| round.disturbed).collect()
    }

    /// Whether nobody tells what other programs did.
    pub(crate) fn is_blind(&self) -> bool {
        self.rounds.iter().any(|round| round.foreign.is_none())
    }

    pub(crate) fn base(&self, part: usize) -> Option<Spread> {
        self.row.base?;
        Some(Spread::of(self.rounds.iter().map(|round| round.base[part])))
    }

    pub(crate) fn ours(&self, part: usize) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.ours[part]))
    }

    /// Ours to the base, each within its round.
    pub(crate) fn ratio(&self, part: usize) -> Option<Spread> {
        self.row.base?;
        Some(Spread::of(self.rounds.iter().map(|round| round.ours[part] / round.base[part])))
    }

    /// Whether a part keeps to its budget; `None` if it has none.
    pub(crate) fn is_part_met(&self, part: usize) -> Option<bool> {
        let budget = self.row.parts[part].budget?;
        Some(budget.is_met(self.value(part)))
    }

    /// What a budget is about.
    fn value(&self, part: usize) -> f64 {
        self.ratio(part).unwrap_or_else(|| self.ours(part)).median
    }

    /// Whether some part is close to its budget.
    fn is_close(&self) -> bool {
        let mut parts = self.parts();
        parts.any(|(index, part)| part.budget.is_some_and(|it| it.is_close(self.value(index))))
    }

    /// Whether all parts keep to their budgets; `None` if none has one.
    pub(crate) fn is_met(&self) -> Option<bool> {
        self.row
            .has_budget()
            .then(|| (0..self.row.parts.len()).all(|part| self.is_part_met(part).unwrap_or(true)))
    }
}
