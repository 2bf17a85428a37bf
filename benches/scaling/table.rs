//! What is measured together, and how it is laid out.

use crate::measure::{Row, Side};
use crate::storm;

pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// What one has to know to read it.
    pub(crate) note: &'static str,
    pub(crate) rows: &'static [Row],
    pub(crate) layout: Layout,
}

pub(crate) enum Layout {
    /// A line for each part, and a column for each number of children.
    Sizes(&'static [u64]),
    /// A line for each row, and a column for each part, which all rows share.
    Rows,
    /// A line for each part.
    Parts,
}

impl Table {
    /// The row once for each number at which it is measured. A storm lasts `seconds`.
    pub(crate) fn sides(&self, row: &Row, seconds: Option<u64>) -> impl Iterator<Item = Row> {
        let storm = seconds.filter(|_| row.name == storm::NAME);
        let sizes = match self.layout {
            Layout::Sizes(sizes) => sizes.to_vec(),
            Layout::Rows | Layout::Parts => vec![storm.unwrap_or(row.ours.n)],
        };
        sizes.into_iter().map({
            let row = *row;
            move |n| Row { ours: Side::verger(n), ..row }
        })
    }
}
