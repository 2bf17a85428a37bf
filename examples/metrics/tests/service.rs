//! The service as a process, scraped over a socket, and the dashboard.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

const DASHBOARD: &str = include_str!("../grafana-dashboard.json");

/// The service, which is killed if the test fails before it has ended.
struct Service {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Service {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_metrics-service"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Returns the next line of its output.
    fn line(&mut self) -> String {
        self.lines.next().expect("one more line").unwrap()
    }

    fn terminate(&mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer
}

/// Returns the value of a metric, as in `verger_starts_total{path="app/ingest"}`.
#[track_caller]
fn value(page: &str, metric: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {metric} in {page}")).parse().unwrap()
}

#[test]
fn what_breaks_is_counted_where_prometheus_can_read_it() {
    let mut service = Service::start();
    let line = service.line();
    let address =
        line.strip_prefix("metrics on http://").unwrap().strip_suffix("/metrics").unwrap();
    assert_eq!(service.line(), "everything has broken once: parser, reader and writer");

    let page = scrape(address);
    let at_least = |metric: &str, least: f64| {
        let value = value(&page, metric);
        assert!(value >= least, "{metric} {value}");
    };
    at_least("verger_starts_total{path=\"app/ingest/parser\"}", 2.0);
    at_least("verger_restarts_total{path=\"app/ingest/parser\"}", 1.0);
    at_least("verger_exits_total{path=\"app/ingest/parser\",reason=\"panicked\"}", 1.0);
    at_least("verger_exits_total{path=\"app/ingest/reader\",reason=\"failed\"}", 1.0);
    at_least("verger_dead_letters_total{path=\"app/writer\",reason=\"mailbox_full\"}", 1.0);
    at_least("verger_restart_delay_seconds_count{path=\"app/ingest/reader\"}", 1.0);
    at_least("verger_restart_delay_seconds_bucket{path=\"app/ingest/reader\",le=\"30\"}", 1.0);
    at_least("verger_limit_used_ratio{path=\"app/ingest\"}", 2.0 / 90.0);
    at_least("verger_mailbox_depth{path=\"app/writer\"}", 1.0);
    at_least("verger_starts_total{path=\"app/conns\"}", 2.0);
    assert_eq!(value(&page, "verger_starts_total{path=\"app/ingest\"}"), 1.0);
    assert!(page.contains("# TYPE verger_restarts_total counter\n"), "{page}");
    assert!(page.contains("# HELP verger_restarts_total Starts after an exit"), "{page}");
    assert!(!page.contains("conn#"), "{page}");

    assert_eq!(service.terminate(), Some(0));
}

/// Appends all texts at a key, however deep.
fn texts<'a>(json: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|field| texts(field, key, found));
        }
        _ => {}
    }
}

#[test]
fn the_dashboard_queries_each_metric_of_verger_and_no_other() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let (mut queries, mut variables) = (Vec::new(), Vec::new());
    texts(&dashboard, "expr", &mut queries);
    texts(&dashboard, "query", &mut variables);
    assert_eq!(queries.len(), 22);
    let mut queried = BTreeSet::new();
    for query in queries.iter().chain(&variables) {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = words.filter(|word| word.starts_with("verger_"));
        queried.extend(names.map(|name| name.strip_suffix("_bucket").unwrap_or(name)));
    }
    let emitted: BTreeSet<_> = verger::metrics::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(queried, emitted);
    // A panel without a place isn't shown.
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(
        panels.iter().all(|panel| panel["gridPos"]["w"].is_u64() && panel["title"].is_string())
    );
}
