//! What is wrong now and in the last fifteen minutes: problems and failures, put together by child.
//!
//! Knows a snapshot and the history. It doesn't decide what a problem is.
//!
//! # Invariants
//!
//! 1. Each child with a problem, or with a failure in the last [`SHOWN`], is in exactly one incident. The dynamic children of one
//!    name are one incident together.
//! 2. Incidents that last stand before those that are over, and then the latest first.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::path::Path;
use crate::serde::Millis;
use crate::status::{EventLevel, EventLog, LoggedEvent, Node, Problem, ProblemKind, Status};

/// For how long an incident is shown, and how long before it a change is of interest.
pub(super) const SHOWN: Duration = Duration::from_secs(900);
/// The most incidents, and the most changes of one.
const MOST: usize = 100;
const CHANGES: usize = 5;

/// The incidents of a tree, or of a part of it.
#[derive(Serialize)]
pub(super) struct IncidentList {
    from_ms: u64,
    dropped_before_ms: Option<u64>,
    incidents: Vec<Incident>,
}

#[derive(Serialize)]
struct Incident {
    /// The child; of several dynamic ones, the one with the latest event.
    path: Path,
    children: usize,
    /// Whether something is wrong now.
    now: bool,
    problems: Vec<Problem>,
    since_ms: u64,
    last_ms: u64,
    failures: u64,
    /// The next attempt, and when it is due.
    attempt: Option<u32>,
    next_ms: Option<u64>,
    cause: Option<String>,
    /// Calls, reloads and leases from before, and meanwhile, the oldest first.
    changes: Vec<LoggedEvent>,
}

/// What is known of an incident while it is put together.
#[derive(Default)]
struct Found<'a> {
    nodes: Vec<&'a Node>,
    problems: Vec<Problem>,
    /// The oldest first.
    entries: Vec<&'a LoggedEvent>,
}

impl IncidentList {
    /// Puts together the incidents at and below a path.
    pub(super) fn new(status: &Status, log: &EventLog, under: &Path) -> Self {
        let now = status.captured_at;
        let from = now.checked_sub(SHOWN).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut found: BTreeMap<Path, Found<'_>> = BTreeMap::new();
        for node in status.nodes().filter(|it| it.child.path.is_at_or_below(under.as_str())) {
            let problems = node.problems();
            if !problems.is_empty() {
                let incident = found.entry(node.child.path.without_serials()).or_default();
                incident.nodes.push(node);
                incident.problems.extend(problems);
            }
        }
        let failures =
            log.below(under).filter(|it| it.level > EventLevel::Info && it.last_at >= from);
        for entry in failures {
            found.entry(entry.path.without_serials()).or_default().entries.push(entry);
        }
        let mut incidents: Vec<_> =
            found.into_values().filter_map(|found| found.incident(log)).collect();
        incidents.sort_by_key(|it| (!it.now, std::cmp::Reverse(it.last_ms)));
        incidents.truncate(MOST);
        let dropped_before_ms = log.dropped_before(under).map(|at| at.millis());
        Self { from_ms: from.millis(), dropped_before_ms, incidents }
    }
}

impl Found<'_> {
    fn incident(self, log: &EventLog) -> Option<Incident> {
        let Self { nodes, problems, entries } = self;
        let latest = entries.last();
        let path = latest.map(|it| &it.path).or(nodes.last().map(|it| &it.child.path))?.clone();
        let mut children: Vec<_> = entries.iter().map(|it| &it.path).collect();
        children.extend(nodes.iter().map(|it| &it.child.path));
        children.sort();
        children.dedup();
        let begun = entries.iter().map(|it| it.first_at);
        let since = begun.chain(problems.iter().filter_map(|it| it.since)).min();
        let states = nodes.iter().map(|it| it.child.since);
        let since = since.or(states.max())?;
        let last = latest.map_or(since, |it| it.last_at);
        let next = nodes.iter().find_map(|it| it.child.next);
        Some(Incident {
            children: children.len(),
            now: problems.iter().any(|it| it.kind != ProblemKind::Failed),
            since_ms: since.millis(),
            last_ms: last.millis(),
            failures: entries.iter().filter(|it| is_failure(it.event)).map(|it| it.count).sum(),
            attempt: next.map(|next| next.attempt),
            next_ms: next.map(|next| next.at.millis()),
            cause: cause(&problems, &entries),
            changes: changes(log, &path, since, last),
            path,
            problems,
        })
    }
}

/// Whether an event is a failure itself, and not what follows from one.
fn is_failure(event: &str) -> bool {
    matches!(event, "errored" | "unhealthy" | "leaked" | "lease_lost" | "deactivate_failed")
}

/// Returns the cause of a problem, or else the cause of the last failure.
fn cause(problems: &[Problem], entries: &[&LoggedEvent]) -> Option<String> {
    let of_problem = problems.iter().find_map(|it| it.cause.clone());
    of_problem.or_else(|| {
        let last = entries.iter().rev().find(|it| is_failure(it.event)).or(entries.last())?;
        // Without the word for the event: `errored: failed: no route`.
        let text = last.text.split_once(": ").map_or(&*last.text, |(_, cause)| cause);
        Some(text.to_owned())
    })
}

/// Returns the last changes that may have to do with a child: of itself, of a child above or below, of its siblings, or of the
/// configuration.
fn changes(log: &EventLog, child: &Path, since: SystemTime, last: SystemTime) -> Vec<LoggedEvent> {
    let from = since.checked_sub(SHOWN).unwrap_or(since);
    let parent = child.parent();
    let is_near = |path: &Path| {
        path.is_at_or_below(child.as_str())
            || child.is_at_or_below(path.as_str())
            || path.parent() == parent
    };
    let is_change = |it: &&LoggedEvent| {
        matches!(it.event, "called" | "reloaded" | "standby" | "lease_granted" | "lease_lost")
            && (from..=last).contains(&it.last_at)
            && is_near(&it.path)
    };
    let mut changes: Vec<_> =
        log.entries().rev().filter(is_change).take(CHANGES).cloned().collect();
    changes.reverse();
    changes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::exit::ExitReason;
    use crate::lifecycle::Lifecycle;
    use crate::status::{ChildInfo, ChildKind, Event, EventKind, LastExit};

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(second)
    }

    fn event(second: u64, path: &str, kind: EventKind) -> Event {
        let path = Path::from_text(path.to_owned());
        Event { seq: second, at: at(second), path, incarnation: 1, kind }
    }

    fn errored(text: &str) -> EventKind {
        EventKind::Moved {
            from: Lifecycle::Active,
            to: Lifecycle::Errored,
            after: Duration::ZERO,
            reason: Some(Arc::new(ExitReason::Failed(text.into()))),
            wait: None,
        }
    }

    fn called(by: &str) -> EventKind {
        EventKind::Called { call: "hold", by: by.into(), reason: None }
    }

    fn tree(second: u64, children: Vec<ChildInfo>) -> Status {
        let leaf = |child| Node { child, supervisor: None, children: vec![] };
        let children = children.into_iter().map(leaf).collect();
        let child = ChildInfo::sample(Path::root("app"), ChildKind::Supervisor);
        let mut status = Status::sample(Node { child, supervisor: None, children });
        status.captured_at = at(second);
        status
    }

    fn list(status: &Status, log: &EventLog) -> Vec<String> {
        let list = IncidentList::new(status, log, &Path::root("app"));
        let line = |it: &Incident| {
            let Incident { path, children, now, since_ms, last_ms, failures, cause, .. } = it;
            let changes: Vec<_> =
                it.changes.iter().map(|it| format!("{} {}", it.path, it.text)).collect();
            let (since, last) = (since_ms / 1_000, last_ms / 1_000);
            let cause = cause.as_deref().unwrap_or_default();
            format!("{path} {children} {now} {since}–{last} ×{failures} {cause} {changes:?}")
        };
        list.incidents.iter().map(line).collect()
    }

    #[test]
    fn a_failure_of_ten_minutes_ago_is_listed_with_its_cause_behind_what_is_wrong_now() {
        let mut log = EventLog::new(100);
        log.record(&event(80, "app/db", called("alice")));
        log.record(&event(90, "app/other/x", called("bob")));
        log.record(&event(100, "app/db", errored("TLS certificate expired")));
        log.record(&event(650, "app/mqtt", errored("no route")));
        log.record(&event(660, "app/mqtt", errored("no route: really")));
        let mut mqtt = ChildInfo::sample(Path::root("app").join("mqtt"), ChildKind::Worker);
        (mqtt.ready, mqtt.lifecycle, mqtt.since) = (false, Lifecycle::Restarting, at(660));
        mqtt.last_exit = Some(LastExit::sample(ExitReason::Failed("no route: really".into())));
        let status = tree(700, vec![mqtt]);
        let expected = [
            r#"app/mqtt 1 true 650–660 ×2 failed: no route: really ["app/db hold called by alice"]"#,
            r#"app/db 1 false 100–100 ×1 failed: TLS certificate expired ["app/db hold called by alice"]"#,
        ];
        assert_eq!(list(&status, &log), expected);
        assert_eq!(list(&tree(1_001, vec![]), &log).len(), 1, "after fifteen minutes it is gone");
    }

    #[test]
    fn dynamic_children_of_one_name_are_one_incident() {
        let mut log = EventLog::new(100);
        for second in 1..=9 {
            log.record(&event(second, &format!("app/web/conn#{second}"), errored("reset")));
        }
        let expected = ["app/web/conn#9 9 false 1–9 ×9 failed: reset []"];
        assert_eq!(list(&tree(10, vec![]), &log), expected);
    }
}
