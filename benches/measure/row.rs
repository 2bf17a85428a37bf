//! A row of a table: what is measured, on which sides, and what it may cost.

use super::figures::Unit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// tokio, written by hand.
    Raw,
    Verger,
}

impl Who {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Verger => "verger",
        }
    }
}

/// Who does the work, and how much of it. What `n` counts is the row's business: children, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) who: Who,
    pub(crate) n: u64,
}

impl Side {
    pub(crate) const fn raw(n: u64) -> Self {
        Self { who: Who::Raw, n }
    }

    pub(crate) const fn verger(n: u64) -> Self {
        Self { who: Who::Verger, n }
    }
}

/// One thing that is measured. It has a figure for each of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// For `--row`.
    pub(crate) name: &'static str,
    /// For whoever reads the table.
    pub(crate) what: &'static str,
    /// What it is compared with; `None` if its figures stand by themselves.
    pub(crate) base: Option<Side>,
    pub(crate) ours: Side,
    /// What [`work`](Self::work) returns, in this order. The row is met if all of them are.
    pub(crate) parts: &'static [Part],
    pub(crate) rounds: usize,
    pub(crate) work: Work,
}

/// Does the work of a row and returns a figure for each part. Called in a process of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    OneSide(fn(Side) -> Vec<f64>),
    /// Of the base and of verger, by turns so short that the machine is mostly as fast for both.
    BothSides(fn([Side; 2]) -> [Vec<f64>; 2]),
}

impl Row {
    /// Verger with one of whatever it is, in fifteen rounds; what else there is to say follows.
    pub(crate) const fn new(name: &'static str, run: fn(Side) -> Vec<f64>) -> Self {
        Self::of(name, Work::OneSide(run))
    }

    /// Compared with the same by hand, both at once.
    pub(crate) const fn both(
        name: &'static str,
        n: u64,
        run: fn([Side; 2]) -> [Vec<f64>; 2],
    ) -> Self {
        Self::of(name, Work::BothSides(run)).beside_raw(n)
    }

    const fn of(name: &'static str, work: Work) -> Self {
        Self { name, what: "", base: None, ours: Side::verger(1), parts: &[], rounds: 15, work }
    }

    pub(crate) const fn what(self, what: &'static str) -> Self {
        Self { what, ..self }
    }

    /// Compared with the same by hand.
    pub(crate) const fn beside_raw(self, n: u64) -> Self {
        Self { base: Some(Side::raw(n)), ours: Side::verger(n), ..self }
    }

    /// Compared with itself at another number.
    pub(crate) const fn against_itself(self, base: u64, n: u64) -> Self {
        Self { base: Some(Side::verger(base)), ours: Side::verger(n), ..self }
    }

    /// Compared with nothing.
    pub(crate) const fn alone(self, side: Side) -> Self {
        Self { base: None, ours: side, ..self }
    }

    pub(crate) const fn parts(self, parts: &'static [Part]) -> Self {
        Self { parts, ..self }
    }

    /// For a row that is short, and whose ratio differs between rounds by more than it is away from its
    /// budget: then the middle one of fifteen is another in each run.
    pub(crate) const fn many_rounds(self) -> Self {
        self.rounds(45)
    }

    pub(crate) const fn rounds(self, rounds: usize) -> Self {
        Self { rounds, ..self }
    }

    /// Whether it compares verger with verger, at another number.
    pub(crate) fn is_against_itself(&self) -> bool {
        self.base.is_some_and(|base| base.who == self.ours.who)
    }

    /// Rows without a budget are there to be looked at.
    pub(crate) fn has_budget(&self) -> bool {
        self.parts.iter().any(|part| part.budget.is_some())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Empty if the row has no other.
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    pub(crate) budget: Option<Budget>,
}

impl Part {
    pub(crate) const fn new(what: &'static str, unit: Unit, budget: Budget) -> Self {
        Self { what, unit, budget: Some(budget) }
    }

    pub(crate) const fn without_budget(what: &'static str, unit: Unit) -> Self {
        Self { what, unit, budget: None }
    }
}

/// Of the ratio to the base or, if there is none, of the figure itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
}

impl Budget {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Below(limit) => value < limit,
        }
    }

    /// Whether it is kept, or not, by less than a tenth.
    pub(crate) fn is_close(self, value: f64) -> bool {
        let (Self::AtMost(bound) | Self::AtLeast(bound) | Self::Below(bound)) = self;
        (value / bound - 1.0).abs() < 0.1
    }

    /// As text, its number written by `show`.
    pub(crate) fn text(self, show: impl Fn(f64) -> String) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {}", show(most)),
            Self::AtLeast(least) => format!("≥ {}", show(least)),
            Self::Below(limit) => format!("< {}", show(limit)),
        }
    }
}
