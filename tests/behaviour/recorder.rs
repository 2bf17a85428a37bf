//! A recorder of metrics for one thread, which keeps every value by name and labels.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Install it with `metrics::set_default_local_recorder`.
#[derive(Default)]
pub(crate) struct Recorded {
    counters: Mutex<BTreeMap<String, Arc<Count>>>,
    gauges: Mutex<BTreeMap<String, Arc<Values>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    described: Mutex<Vec<String>>,
}

impl Recorded {
    /// Returns the counter with these labels, as in `verger_exits_total path=app/a reason=failed`.
    #[track_caller]
    pub(crate) fn count(&self, key: &str) -> u64 {
        let counters = self.counters.lock().unwrap();
        let found =
            counters.get(key).unwrap_or_else(|| panic!("no {key} in {:?}", counters.keys()));
        found.0.load(Ordering::Relaxed)
    }

    /// Returns all counters with this name: labels and values.
    pub(crate) fn counts(&self, name: &str) -> Vec<(String, u64)> {
        let counters = self.counters.lock().unwrap();
        let of_name = |(key, count): (&String, &Arc<Count>)| {
            let labels = key.strip_prefix(name)?.strip_prefix(' ')?;
            Some((labels.to_owned(), count.0.load(Ordering::Relaxed)))
        };
        counters.iter().filter_map(of_name).collect()
    }

    /// Returns the last value of a gauge.
    pub(crate) fn gauge(&self, key: &str) -> Option<f64> {
        self.gauges.lock().unwrap().get(key)?.0.lock().unwrap().last().copied()
    }

    /// Returns the values of a histogram.
    pub(crate) fn histogram(&self, key: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        histograms.get(key).map(|it| it.0.lock().unwrap().clone()).unwrap_or_default()
    }

    /// Returns the keys of all metrics.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.counters.lock().unwrap().keys().cloned().collect();
        keys.extend(self.gauges.lock().unwrap().keys().cloned());
        keys.extend(self.histograms.lock().unwrap().keys().cloned());
        keys
    }

    /// Returns the descriptions: kind, name, unit.
    pub(crate) fn described(&self) -> Vec<String> {
        self.described.lock().unwrap().clone()
    }

    fn describe(&self, kind: &str, name: &KeyName, unit: Option<Unit>, help: &SharedString) {
        assert!(!help.is_empty());
        let unit = unit.map(|unit| unit.as_str().to_owned());
        self.described.lock().unwrap().push(format!("{kind} {} {unit:?}", name.as_str()));
    }
}

fn text(key: &Key) -> String {
    let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
    key.name().to_owned() + &labels.collect::<String>()
}

impl Recorder for Recorded {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe("counter", &name, unit, &help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe("gauge", &name, unit, &help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe("histogram", &name, unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(text(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(text(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(Arc::clone(histograms.entry(text(key)).or_default()))
    }
}

#[derive(Default)]
struct Count(AtomicU64);

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}

/// Every value of a gauge or histogram.
#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl GaugeFn for Values {
    fn increment(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}
