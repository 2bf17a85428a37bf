//! Calls of the recorder, which is foreign code and may panic.
//!
//! # Invariants
//!
//! 1. No panic of a recorder, or of a handle that it has made, leaves this module.
//! 2. After the first one this crate calls no recorder any more.
//! 3. Without a recorder, nothing is called.

use std::sync::Arc;

use ::metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit,
    with_recorder,
};

use super::list::{Metric, MetricKind, RELOADS};
use crate::panic::Installed;
use crate::path::Path;

const METADATA: Metadata<'static> = Metadata::new("verger", Level::INFO, Some("verger"));

static RECORDER: Installed = Installed::new("metrics recorder", "no further metrics are recorded");

/// Returns whether a recorder is installed. The facade's own no-op recorder has no size, which is
/// the only difference that can be seen.
pub(crate) fn is_installed() -> bool {
    with_recorder(|recorder| size_of_val(recorder) > 0)
}

/// Calls `record` with the recorder, if one is installed and has never panicked.
pub(super) fn with<T>(record: impl FnOnce(&dyn Recorder) -> T) -> Option<T> {
    if !is_installed() {
        return None;
    }
    RECORDER.call(|| with_recorder(|recorder| record(recorder)))
}

/// Drops handles that recorders have made.
pub(super) fn discard<T>(handles: T) {
    RECORDER.contain(|| drop(handles));
}

/// Returns the value of a label that is not a constant.
pub(super) fn shared(text: &str) -> SharedString {
    SharedString::from_shared(Arc::from(text))
}

pub(super) fn counter(recorder: &dyn Recorder, metric: Metric, labels: Vec<Label>) -> Counter {
    recorder.register_counter(&Key::from_parts(metric.name, labels), &METADATA)
}

pub(super) fn gauge(recorder: &dyn Recorder, name: &'static str, labels: Vec<Label>) -> Gauge {
    recorder.register_gauge(&Key::from_parts(name, labels), &METADATA)
}

pub(super) fn histogram(recorder: &dyn Recorder, metric: Metric, labels: Vec<Label>) -> Histogram {
    recorder.register_histogram(&Key::from_parts(metric.name, labels), &METADATA)
}

pub(super) fn describe(recorder: &dyn Recorder, metric: Metric) {
    let name = KeyName::from_const_str(metric.name);
    let unit = Some(if metric.unit == "seconds" { Unit::Seconds } else { Unit::Count });
    let help = SharedString::const_str(metric.help);
    match metric.kind {
        MetricKind::Counter => recorder.describe_counter(name, unit, help),
        MetricKind::Gauge => recorder.describe_gauge(name, unit, help),
        MetricKind::Histogram => recorder.describe_histogram(name, unit, help),
    }
}

/// Counts a configuration that was applied, or wasn't.
pub(crate) fn reloaded(root: &Path, result: &'static str) {
    with(|recorder| {
        let path = Label::new("path", shared(root.as_str()));
        let labels = vec![path, Label::from_static_parts("result", result)];
        counter(recorder, RELOADS, labels).increment(1);
    });
}
