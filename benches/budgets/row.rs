//! A row of the table: the work, what it is compared with, and its limit.

use crate::measure::{Side, Spread, Unit, measure};

/// What the figure is compared with. The numbers are what the work counts, mostly children.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// Hand-written tokio with the same number.
    Tokio(u64),
    /// verger with another number: the first is the base.
    Itself(u64, u64),
    /// Nothing: the limit is that of the figure itself.
    Alone(u64),
}

/// The limit of the median ratio or, without a base, of the median figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    pub(crate) fn show(self, show: impl Fn(f64) -> String) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {}", show(limit)),
            Self::AtLeast(limit) => format!("≥ {}", show(limit)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The value of `--row`.
    pub(crate) name: &'static str,
    /// The description in the table.
    pub(crate) what: &'static str,
    pub(crate) base: Base,
    pub(crate) limit: Limit,
    /// The same figure of the best other crate, for orientation.
    pub(crate) best_peer: &'static str,
    pub(crate) unit: Unit,
    pub(crate) work: fn(Side, u64) -> f64,
    rounds: usize,
}

pub(crate) const fn row(
    name: &'static str,
    base: Base,
    limit: Limit,
    best_peer: &'static str,
    unit: Unit,
    work: fn(Side, u64) -> f64,
    what: &'static str,
) -> Row {
    Row { name, what, base, limit, best_peer, unit, work, rounds: 15 }
}

impl Row {
    pub(crate) const fn rounds(self, rounds: usize) -> Self {
        Self { rounds, ..self }
    }

    /// Both sides, in the order in which the table shows them.
    fn sides(&self) -> (Option<(Side, u64)>, (Side, u64)) {
        match self.base {
            Base::Tokio(n) => (Some((Side::Tokio, n)), (Side::Verger, n)),
            Base::Itself(base, n) => (Some((Side::Verger, base)), (Side::Verger, n)),
            Base::Alone(n) => (None, (Side::Verger, n)),
        }
    }

    /// Measures both sides in turns; the side that begins alternates.
    ///
    /// # Errors
    ///
    /// What the process of a measurement printed before it failed.
    pub(crate) fn measure(&self, rounds: Option<usize>) -> Result<Measured, String> {
        let (base, ours) = self.sides();
        let figure = |(side, n)| measure(self.name, side, n).map(|figures| figures[0]);
        let mut measured = Measured { row: *self, base: Vec::new(), ours: Vec::new() };
        for round in 0..rounds.unwrap_or(self.rounds) {
            let base_first = round % 2 == 0;
            if let Some(base) = base.filter(|_| base_first) {
                measured.base.push(figure(base)?);
            }
            measured.ours.push(figure(ours)?);
            if let Some(base) = base.filter(|_| !base_first) {
                measured.base.push(figure(base)?);
            }
        }
        Ok(measured)
    }
}

/// The figures of a row, one for each round. Without a base, `base` is empty.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) base: Vec<f64>,
    pub(crate) ours: Vec<f64>,
}

impl Measured {
    /// The spread of the base. `None` without a base.
    pub(crate) fn base(&self) -> Option<Spread> {
        (!self.base.is_empty()).then(|| Spread::of(self.base.iter().copied()))
    }

    pub(crate) fn ours(&self) -> Spread {
        Spread::of(self.ours.iter().copied())
    }

    /// The ratios within each round. `None` without a base.
    pub(crate) fn ratio(&self) -> Option<Spread> {
        let ratios = self.ours.iter().zip(&self.base).map(|(ours, base)| ours / base);
        (!self.base.is_empty()).then(|| Spread::of(ratios))
    }

    /// What the limit is compared with.
    pub(crate) fn value(&self) -> f64 {
        self.ratio().unwrap_or_else(|| self.ours()).median
    }

    pub(crate) fn is_met(&self) -> bool {
        self.row.limit.is_met(self.value())
    }
}
