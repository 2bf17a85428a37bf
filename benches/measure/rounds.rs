//! Rounds: both sides in turns, and once more if others had disturbed them.

use super::figures::{Spread, Unit};
use super::load::Load;
use super::process;
use super::row::{Part, Row};

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
    pub(crate) disturbed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) rounds: Vec<Round>,
    /// How many disturbed rounds were thrown away.
    pub(crate) repeated: usize,
}

/// Measures a row. A disturbed round is repeated, as often as there are rounds; then the least
/// disturbed ones have to do.
///
/// # Errors
///
/// What a process said that could not do its work.
pub(crate) fn measure(row: &Row, plan: Plan) -> Result<Measured, String> {
    let wanted = plan.rounds.unwrap_or(row.rounds).max(1);
    let (mut good, mut disturbed) = (Vec::new(), Vec::new());
    while good.len() < wanted && good.len() + disturbed.len() < 2 * wanted {
        let round = round(row, (good.len() + disturbed.len()) % 2 == 1)?;
        let keep = plan.anyway || !round.disturbed;
        if keep { &mut good } else { &mut disturbed }.push(round);
    }
    disturbed.sort_by(|a, b| a.foreign.partial_cmp(&b.foreign).expect("a share is a number"));
    let repeated = disturbed.len().min(good.len() + disturbed.len() - wanted);
    good.extend(disturbed.into_iter().take(wanted - good.len()));
    Ok(Measured { row: *row, rounds: good, repeated })
}

/// There and back, so that neither side is always the first.
fn round(row: &Row, ours_first: bool) -> Result<Round, String> {
    let before = Load::now();
    let base = || row.base.map_or(Ok(Vec::new()), |side| process::measure(row, side));
    let ours = || process::measure(row, row.ours);
    let (base, ours) = if ours_first {
        let ours = ours()?;
        (base()?, ours)
    } else {
        (base()?, ours()?)
    };
    let foreign = before.zip(Load::now()).map(|(before, now)| before.foreign(now));
    // What is counted is the same whatever else runs.
    let counted = row.parts.iter().all(|part| part.unit == Unit::Count);
    let disturbed = !counted && foreign.is_some_and(|(_, disturbed)| disturbed);
    Ok(Round { base, ours, foreign: foreign.map(|(share, _)| share), disturbed })
}

impl Measured {
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &'static Part)> {
        self.row.parts.iter().enumerate()
    }

    pub(crate) fn disturbed(&self) -> usize {
        self.rounds.iter().filter(|round| round.disturbed).count()
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
        let value = self.ratio(part).unwrap_or_else(|| self.ours(part));
        Some(budget.is_met(value.median))
    }

    /// Whether all parts keep to their budgets; `None` if none has one.
    pub(crate) fn is_met(&self) -> Option<bool> {
        self.row
            .has_budget()
            .then(|| (0..self.row.parts.len()).all(|part| self.is_part_met(part).unwrap_or(true)))
    }
}
