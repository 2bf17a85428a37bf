//! The observer of one zone: compares the notes of its children with the events of the library.
//!
//! Notes are complete and precede the events (see [`notes`](crate::notes)). Events are in the order
//! of each supervisor, and some may be missed. The observer builds a model from both. Whatever
//! contradicts the model is a violation:
//!
//! | rule | where |
//! | --- | --- |
//! | a child has one live incarnation, unless one was reported as leaked | `notes`, `moves` |
//! | a child is cancelled only when all later children of its group are down | `notes` |
//! | only legal edges, each from the state of the last one; incarnations are counted | `moves` |
//! | an incarnation ends as its own code noted | `moves`, `lives` |
//! | a start respects requirements, start order and backoff | `moves` |
//! | when a supervisor starts, nothing below it is alive | `moves` |
//! | restarts are granted and refused exactly by the limit | `budget` |
//! | when the tree is at rest, status, events and notes agree | `compare` |

mod budget;
mod compare;
mod edges;
mod lives;
mod moves;
mod notes;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use verger::Lifecycle;
use verger::status::{Event, EventKind};

use self::budget::{Budget, SLACK};
use self::lives::Lives;
use self::notes::{Launch, Suspect};
use crate::layout::{Plan, Rules};
use crate::tally::{Tally, count};

/// A pair of simultaneous times: of this process, and of the tree's events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) instant: Instant,
    pub(crate) wall: SystemTime,
}

impl Clock {
    pub(crate) fn wall(&self, at: Instant) -> SystemTime {
        match at.checked_duration_since(self.instant) {
            Some(later) => self.wall + later,
            None => self.wall - self.instant.duration_since(at),
        }
    }

    fn instant(&self, at: SystemTime) -> Instant {
        match at.duration_since(self.wall) {
            Ok(later) => self.instant + later,
            Err(earlier) => self.instant.checked_sub(earlier.duration()).unwrap_or(self.instant),
        }
    }
}

/// The model of one zone.
#[derive(Debug)]
pub(crate) struct Watch {
    plan: Arc<Plan>,
    clock: Clock,
    tally: Arc<Tally>,
    supervisors: HashMap<String, Supervisor>,
    lives: Lives,
    /// Children that have leaked and not ended.
    leaks: HashSet<(String, u32)>,
    /// Incarnations that were alive when their successor started, which only a leak explains.
    overlapped: HashSet<(String, u32)>,
    launches: Vec<Launch>,
    suspects: Vec<Suspect>,
    /// Whether events were missed since the last comparison.
    blind: bool,
    /// Whether events were missed right before the next one.
    lagged: bool,
    /// All events until this instant were processed.
    pub(crate) processed_until: Option<Instant>,
    /// Whether the whole tree is being stopped.
    pub(crate) stopping: bool,
}

/// What is known of a supervisor from its events.
#[derive(Debug)]
struct Supervisor {
    rules: Rules,
    budget: Budget,
    children: HashMap<String, Seen>,
    /// When the supervisor started.
    began: SystemTime,
    /// The intervals in which a hand called `wake`.
    woken: Option<(SystemTime, Option<SystemTime>)>,
}

/// What is known of a child from its events. `None`: unknown, because events were missed.
#[derive(Clone, Debug)]
struct Seen {
    state: Option<Lifecycle>,
    incarnation: Option<u32>,
    /// Whether the child was active when it ended.
    was_active: Option<bool>,
    /// Whether its failure is charged even if the child wasn't active.
    is_bug: bool,
    /// Whether the child is down because it failed too often.
    gave_up: bool,
    /// When the child entered its state.
    since: Option<SystemTime>,
    /// The start and the length of its backoff.
    wait: Option<(SystemTime, Duration)>,
}

impl Seen {
    const UNKNOWN: Self = Self {
        state: None,
        incarnation: None,
        was_active: None,
        is_bug: false,
        gave_up: false,
        since: None,
        wait: None,
    };
    const NEW: Self =
        Self { state: Some(Lifecycle::Discovered), incarnation: Some(0), ..Self::UNKNOWN };
}

impl Watch {
    pub(crate) fn new(plan: Arc<Plan>, clock: Clock, tally: Arc<Tally>) -> Self {
        let supervisors = plan.supervisors.iter().map(|(path, &rules)| {
            let budget = Budget::new(rules.max, rules.period);
            let (children, began) = (HashMap::new(), SystemTime::UNIX_EPOCH);
            (path.clone(), Supervisor { rules, budget, children, began, woken: None })
        });
        Self {
            supervisors: supervisors.collect(),
            clock,
            tally,
            lives: Lives::default(),
            leaks: HashSet::new(),
            overlapped: HashSet::new(),
            launches: Vec::new(),
            suspects: Vec::new(),
            // Leaking children start before the observer subscribes.
            blind: plan.leaky,
            plan,
            lagged: false,
            processed_until: None,
            stopping: false,
        }
    }

    /// Records that events were missed before the next one.
    pub(crate) fn missed(&mut self, events: u64) {
        self.tally.missed.fetch_add(events, std::sync::atomic::Ordering::Relaxed);
        self.lagged = true;
    }

    /// Processes an event. The notes that precede it are already processed.
    pub(crate) fn event(&mut self, event: &Event) {
        count(&self.tally.events);
        if std::mem::take(&mut self.lagged) {
            self.blind = true;
            self.suspects.clear();
            for supervisor in self.supervisors.values_mut() {
                supervisor.children.clear();
                supervisor.budget.blind(event.at);
            }
        }
        let path = event.path.as_str();
        match &event.kind {
            EventKind::Moved { .. } => self.moved(event),
            EventKind::GaveUp { .. } => self.gave_up(event),
            EventKind::Leaked => self.leaked(path, event.incarnation),
            EventKind::LeakEnded => {
                let known = self.leaks.remove(&(path.to_owned(), event.incarnation));
                if !known && !self.blind {
                    self.tally.violation(format!("{path}: a leak ended that was none"));
                }
            }
            EventKind::DeactivateFailed { reason } => {
                self.tally.violation(format!("{path}: its deactivate failed: {reason}"));
            }
            EventKind::Removed => self.removed(path),
            other => self.tally.violation(format!("{path}: an unknown event: {other:?}")),
        }
    }

    fn leaked(&mut self, path: &str, incarnation: u32) {
        let leak = (path.to_owned(), incarnation);
        self.overlapped.remove(&leak);
        self.leaks.insert(leak);
        if self.plan.leaky {
            count(&self.tally.planned_leaks);
        } else {
            count(&self.tally.leaked);
            eprintln!("soak: {path}: incarnation {incarnation} has leaked");
        }
    }

    fn removed(&mut self, path: &str) {
        let (parent, name) = split(path);
        if let Some(supervisor) = self.supervisors.get_mut(parent) {
            let last = supervisor.children.remove(name).and_then(|seen| seen.state);
            if last.is_some_and(|state| state != Lifecycle::Stopped) {
                self.tally.violation(format!("{path}: removed while {last:?}"));
            }
        }
        self.lives.forget(path);
    }

    /// Records that a call begins that starts a child of this supervisor: it may cut a backoff short, or clear the
    /// restart window for a child that was given up.
    pub(crate) fn begins_start(&mut self, parent: &str) {
        let from = self.clock.wall(Instant::now());
        let Some(supervisor) = self.supervisors.get_mut(parent) else { return };
        supervisor.budget.clears(from);
        supervisor.woken = Some((from, None));
    }

    /// Records that the call has returned. It isn't known which of the two it has done.
    pub(crate) fn ends_start(&mut self, parent: &str) {
        let to = self.clock.wall(Instant::now());
        let Some(supervisor) = self.supervisors.get_mut(parent) else { return };
        supervisor.budget.may_have_cleared(to);
        supervisor.woken = supervisor.woken.map(|(from, _)| (from, Some(to)));
    }
}

impl Supervisor {
    fn seen(&mut self, name: &str, blind: bool) -> &mut Seen {
        if !self.children.contains_key(name) {
            let new = if blind { Seen::UNKNOWN } else { Seen::NEW };
            self.children.insert(name.to_owned(), new);
        }
        self.children.get_mut(name).expect("it was just put there")
    }

    /// Whether a hand may have called `wake` between these two instants.
    fn was_woken(&self, from: SystemTime, to: SystemTime) -> bool {
        self.woken.is_some_and(|(begun, ended)| {
            begun <= to + SLACK && ended.is_none_or(|ended| ended + SLACK >= from)
        })
    }
}

/// Splits a path into the supervisor's path and the child's name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns a child's position in start order: the number in its name. Guests come last.
fn position(name: &str) -> u64 {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    match (digits.parse::<u64>(), name.starts_with(crate::layout::GUEST)) {
        (Ok(number), true) => 1_000_000 + number,
        (Ok(number), false) => number,
        (Err(_), _) => u64::MAX,
    }
}
