//! Figures of several rounds, and how they are written.

use std::time::Duration;

/// What a figure counts. It says how the figure is written, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanos,
    Bytes,
    PerSecond,
    Count,
}

impl Unit {
    /// In the scale in which one says it: `612 ns`, `1.29 ms`, `575 k/s`.
    pub(crate) fn show(self, figure: f64) -> String {
        let scales: &[(f64, &str)] = match self {
            Self::Nanos => &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            Self::Bytes => &[(1024.0 * 1024.0, " MiB"), (1.0, " B")],
            Self::PerSecond => &[(1e6, " M/s"), (1e3, " k/s"), (1.0, " /s")],
            Self::Count => &[(1.0, "")],
        };
        let fits = scales.iter().find(|(scale, _)| figure >= *scale);
        let (scale, name) = fits.or(scales.last()).expect("each has one");
        format!("{}{name}", three_digits(figure / scale))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Bytes => "bytes",
            Self::PerSecond => "per second",
            Self::Count => "count",
        }
    }
}

/// More than three are noise.
fn three_digits(number: f64) -> String {
    match number {
        number if number >= 100.0 || number == number.trunc() => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}

/// The least, the middle and the greatest of some figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// # Panics
    ///
    /// Panics if there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (min, max) = (figures[0], figures[figures.len() - 1]);
        let half = figures.len() / 2;
        let median = match figures.len() % 2 {
            0 => f64::midpoint(figures[half - 1], figures[half]),
            _ => figures[half],
        };
        Self { min, median, max }
    }

    pub(crate) fn text(self, show: impl Fn(f64) -> String) -> String {
        format!("{}–{}–{}", show(self.min), show(self.median), show(self.max))
    }
}

/// The median of times, in nanoseconds.
///
/// A clock has a grain, often of ten nanoseconds, so that many short times are equal, and the one in the
/// middle jumps by three per cent when a few others change. So it lies among its equals as far as they lie
/// below the middle, and these reach half of the way to their neighbours.
pub(crate) fn p50(took: impl IntoIterator<Item = Duration>) -> f64 {
    let mut took: Vec<_> = took.into_iter().map(|took| took.as_secs_f64() * 1e9).collect();
    took.sort_by(f64::total_cmp);
    let middle = took[took.len() / 2];
    let below = took.partition_point(|&it| it < middle);
    let equal = took[below..].partition_point(|&it| it <= middle);
    let edge = |neighbour: Option<&f64>| neighbour.map_or(middle, |it| it.midpoint(middle));
    let from = edge(took[..below].last());
    let to = edge(took.get(below + equal));
    from + (to - from) * (took.len() as f64 / 2.0 - below as f64) / equal as f64
}
