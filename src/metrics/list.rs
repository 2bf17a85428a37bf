//! Which metrics exist: names, units, labels, help texts.

/// The kind of a metric.
///
/// The example of [`Metric`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// A count that only grows, until the program ends.
    Counter,
    /// A value that rises and falls. [`Gauges`](super::Gauges) sets it.
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

type Text = &'static str;

const fn counter(name: Text, labels: &'static [Text], help: Text) -> Metric {
    Metric { name, kind: MetricKind::Counter, unit: "count", labels, help }
}

const fn gauge(name: Text, unit: Text, labels: &'static [Text], help: Text) -> Metric {
    Metric { name, kind: MetricKind::Gauge, unit, labels, help }
}

const fn histogram(name: Text, help: Text) -> Metric {
    Metric { name, kind: MetricKind::Histogram, unit: "seconds", labels: PATH, help }
}

pub(super) const STARTS: Metric =
    counter("verger_starts_total", PATH, "Incarnations that were started");

pub(super) const RESTARTS: Metric = counter(
    "verger_restarts_total",
    PATH,
    "Starts after an exit, of the child itself or of a sibling that restarts it too",
);

pub(super) const EXITS: Metric = counter(
    "verger_exits_total",
    &["path", "reason"],
    "Incarnations that ended or leaked, by the kind of their exit",
);

pub(super) const RESTART_DELAY: Metric = histogram(
    "verger_restart_delay_seconds",
    "Delay of the backoff before a restart, recorded when the restart is decided",
);

pub(super) const STOP: Metric = histogram(
    "verger_stop_seconds",
    "Time from the cancellation of a child until its end, leak or abort",
);

pub(super) const INFO: Metric =
    gauge("verger_info", "count", &["version"], "1, with the version of verger");

pub(super) const CHILD_STATE: Metric = gauge(
    "verger_child_state",
    "count",
    &["path", "state"],
    "1 for the state that a declared child is in, and 0 for the other seven",
);

pub(super) const CHILDREN: Metric = gauge(
    "verger_children",
    "count",
    &["supervisor", "state"],
    "Children in this state that were added while the tree runs",
);

pub(super) const PROBLEMS: Metric =
    gauge("verger_problems", "count", &["kind"], "Problems of this kind in the tree");

pub(super) const LIMIT_USED: Metric = gauge(
    "verger_limit_used_ratio",
    "ratio",
    PATH,
    "Share of a restart limit that is used up, from 0 to 1: the child's own, or that of all its children",
);

pub(super) const MAILBOX_DEPTH: Metric = gauge(
    "verger_mailbox_depth",
    "count",
    PATH,
    "Messages in the mailbox, including those that are not acknowledged yet",
);

pub(super) const MAILBOX_CAPACITY: Metric =
    gauge("verger_mailbox_capacity", "count", PATH, "Messages that the mailbox can hold");

pub(super) const DEAD_LETTERS: Metric = counter(
    "verger_dead_letters_total",
    &["path", "reason"],
    "Messages that were not delivered and children that were given up, by reason",
);

pub(super) const FAILED_RUNS: Metric =
    counter("verger_failed_runs_total", PATH, "Runs of periodic children that failed");

pub(super) const LONG_POLLS: Metric =
    counter("verger_long_polls_total", PATH, "Polls that lasted 5 s or longer");

/// In whole seconds, because the facade's counters are integers.
pub(super) const BUSY: Metric = Metric {
    unit: "seconds",
    ..counter("verger_busy_seconds_total", PATH, "Time that polls have kept threads busy")
};

pub(super) const RELOADS: Metric = counter(
    "verger_reloads_total",
    &["path", "result"],
    "Configurations that were applied or not, by result",
);

/// All metrics that this crate records.
pub const ALL: &[Metric] = &[
    STARTS,
    RESTARTS,
    EXITS,
    RESTART_DELAY,
    STOP,
    INFO,
    CHILD_STATE,
    CHILDREN,
    PROBLEMS,
    LIMIT_USED,
    MAILBOX_DEPTH,
    MAILBOX_CAPACITY,
    DEAD_LETTERS,
    FAILED_RUNS,
    LONG_POLLS,
    BUSY,
    RELOADS,
];
