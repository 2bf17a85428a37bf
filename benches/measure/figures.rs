//! Units, medians and spreads.

use std::time::Duration;

/// The unit of a figure, which decides how the figure is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanos,
    Bytes,
    PerSecond,
    Count,
}

impl Unit {
    /// A figure with three digits in a readable scale: `612 ns`, `1.29 ms`, `575 k/s`.
    pub(crate) fn show(self, figure: f64) -> String {
        let scales: &[(f64, &str)] = match self {
            Self::Nanos => &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            Self::Bytes => &[(1024.0 * 1024.0, " MiB"), (1.0, " B")],
            Self::PerSecond => &[(1e6, " M/s"), (1e3, " k/s"), (1.0, " /s")],
            Self::Count => &[(1.0, "")],
        };
        let fits = scales.iter().find(|(scale, _)| figure >= *scale);
        let (scale, name) = fits.or(scales.last()).expect("each unit has a scale");
        let scaled = figure / scale;
        match scaled {
            _ if scaled >= 100.0 || scaled == scaled.trunc() => format!("{scaled:.0}{name}"),
            _ if scaled >= 10.0 => format!("{scaled:.1}{name}"),
            _ => format!("{scaled:.2}{name}"),
        }
    }
}

/// The minimum, median and maximum of some figures.
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
        let (low, high) = ((figures.len() - 1) / 2, figures.len() / 2);
        let median = f64::midpoint(figures[low], figures[high]);
        Self { min: figures[0], median, max: figures[figures.len() - 1] }
    }

    pub(crate) fn show(self, show: impl Fn(f64) -> String) -> String {
        format!("{}–{}–{}", show(self.min), show(self.median), show(self.max))
    }
}

/// A percentile of times, in nanoseconds.
pub(crate) fn percentile(percent: usize, mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e9
}
