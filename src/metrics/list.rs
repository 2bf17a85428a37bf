//! Which metrics exist: names, units, labels, help texts.

/// The kind of a metric.
///
/// The example of [`Metric`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// A count that only grows, until the program ends.
    Counter,
    /// A value that rises and falls. [`record`](super::record) sets it.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// A metric that this crate records.
///
/// ```
/// use verger::metrics::{ALL, MetricKind};
///
/// for metric in ALL.iter().filter(|metric| metric.kind == MetricKind::Gauge) {
///     println!("{} ({}): {}", metric.name, metric.unit, metric.help);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name, as recorders get it.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The unit of a value: `count`, `seconds`, or `ratio` for a number from 0 to 1.
    pub unit: &'static str,
    /// The keys of its labels.
    pub labels: &'static [&'static str],
    /// What is counted or measured, in one sentence.
    pub help: &'static str,
}

const PATH: &[&str] = &["path"];

pub(super) const STARTS: Metric = Metric {
    name: "verger_starts_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: PATH,
    help: "Incarnations that were started",
};

pub(super) const RESTARTS: Metric = Metric {
    name: "verger_restarts_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: PATH,
    help: "Starts after an exit, of the child itself or of a sibling that restarts it too",
};

pub(super) const EXITS: Metric = Metric {
    name: "verger_exits_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: &["path", "reason"],
    help: "Incarnations that ended or leaked, by the kind of their exit",
};

pub(super) const RESTART_DELAY: Metric = Metric {
    name: "verger_restart_delay_seconds",
    kind: MetricKind::Histogram,
    unit: "seconds",
    labels: PATH,
    help: "Delay of the backoff before a restart, recorded when the restart is decided",
};

pub(super) const STOP: Metric = Metric {
    name: "verger_stop_seconds",
    kind: MetricKind::Histogram,
    unit: "seconds",
    labels: PATH,
    help: "Time from the cancellation of a child until its end, leak or abort",
};

pub(super) const LIMIT_USED: Metric = Metric {
    name: "verger_limit_used",
    kind: MetricKind::Gauge,
    unit: "ratio",
    labels: PATH,
    help: "Share of a restart limit that is used up, from 0 to 1: the child's own, or that of all its children",
};

pub(super) const MAILBOX_DEPTH: Metric = Metric {
    name: "verger_mailbox_depth",
    kind: MetricKind::Gauge,
    unit: "count",
    labels: PATH,
    help: "Messages in the mailbox, including those that are not acknowledged yet",
};

pub(super) const DEAD_LETTERS: Metric = Metric {
    name: "verger_dead_letters_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: &["path", "reason"],
    help: "Messages that were not delivered and children that were given up, by reason",
};

pub(super) const FAILED_RUNS: Metric = Metric {
    name: "verger_failed_runs_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: PATH,
    help: "Runs of periodic children that failed",
};

pub(super) const RELOADS: Metric = Metric {
    name: "verger_reloads_total",
    kind: MetricKind::Counter,
    unit: "count",
    labels: &["path", "result"],
    help: "Configurations that were applied or not, by result",
};

/// All metrics that this crate records.
pub const ALL: &[Metric] = &[
    STARTS,
    RESTARTS,
    EXITS,
    RESTART_DELAY,
    STOP,
    LIMIT_USED,
    MAILBOX_DEPTH,
    DEAD_LETTERS,
    FAILED_RUNS,
    RELOADS,
];
