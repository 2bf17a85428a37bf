//! The observer of one zone: holds what its children note against what the library says.
//!
//! It believes neither. Notes are complete and come first (see [`notes`](crate::notes)); events are
//! in the order of each supervisor, and some may be missing. From both it keeps a picture of its
//! own, and everything that doesn't fit is a violation:
//!
//! | rule | where |
//! | --- | --- |
//! | a child has one live incarnation, unless one was reported as leaked | `notes`, `moves` |
//! | a child is asked to stop when all behind it in its group are down | `notes` |
//! | only legal edges, each from where the last one led; incarnations are counted | `moves` |
//! | an incarnation ends the way its own code says | `moves`, `lives` |
//! | a start has what it requires, waits its turn, and its backoff | `moves` |
//! | a supervisor starts on clean ground: nothing below it lives | `moves` |
//! | restarts are granted and refused exactly by the limit | `budget` |
//! | when all is quiet, status, events and notes say the same | `compare` |

mod budget;
mod compare;
mod edges;
mod lives;
mod moves;
mod notes;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use verger::{Event, EventKind, Lifecycle};

use self::budget::{Budget, SLACK};
use self::lives::Lives;
use self::notes::{Launch, Suspect};
use crate::layout::{Plan, Rules};
use crate::tally::{Tally, count};

/// The tree's clock, by which events are dated, and ours.
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

/// What a hand is about to do that makes a rule hold differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Retry a child: its supervisor forgets its restarts.
    Retry,
    /// Cut a wait short.
    Wake,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Watch {
    plan: Arc<Plan>,
    clock: Clock,
    tally: Arc<Tally>,
    supervisors: HashMap<String, Supervisor>,
    lives: Lives,
    /// Who has leaked and not ended.
    leaks: HashSet<(String, u32)>,
    /// Who had a successor while he lived, which only a leak excuses.
    overlapped: HashSet<(String, u32)>,
    launches: Vec<Launch>,
    suspects: Vec<Suspect>,
    /// Events are missing since all was compared last.
    blind: bool,
    /// Events are missing right before the next one.
    lagged: bool,
    /// All events that were there then have been taken in.
    pub(crate) heard: Option<Instant>,
    /// The whole tree is being stopped.
    pub(crate) stopping: bool,
}

/// What is known of a supervisor from its events.
#[derive(Debug)]
struct Supervisor {
    rules: Rules,
    budget: Budget,
    children: HashMap<String, Seen>,
    /// When it began to start.
    began: SystemTime,
    /// From when to when a hand has cut waits short.
    woken: Option<(SystemTime, Option<SystemTime>)>,
}

/// What is known of a child from its events. `None`: nothing, because some are missing.
#[derive(Clone, Debug)]
struct Seen {
    state: Option<Lifecycle>,
    incarnation: Option<u32>,
    /// Whether it was Active when it ended.
    was_active: Option<bool>,
    /// Its end always counts.
    escalated: bool,
    /// It failed too often and is down for that.
    gave_up: bool,
    /// Since when it is in its state.
    since: Option<SystemTime>,
    /// From when it has to wait, and for how long.
    wait: Option<(SystemTime, Duration)>,
}

impl Seen {
    const UNKNOWN: Self = Self {
        state: None,
        incarnation: None,
        was_active: None,
        escalated: false,
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
            // The few that leak are up before anybody listens.
            blind: plan.leaky,
            plan,
            lagged: false,
            heard: None,
            stopping: false,
        }
    }

    /// Events are missing before the next one.
    pub(crate) fn missed(&mut self, events: u64) {
        self.tally.missed.fetch_add(events, std::sync::atomic::Ordering::Relaxed);
        self.lagged = true;
    }

    /// Takes in an event. The notes that were there when it came have been taken in.
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

    /// Says that a call begins for a child of this supervisor; see [`Mark`].
    pub(crate) fn begins(&mut self, parent: &str, mark: Mark) {
        let from = self.clock.wall(Instant::now());
        let Some(supervisor) = self.supervisors.get_mut(parent) else { return };
        match mark {
            Mark::Retry => supervisor.budget.clears(from),
            Mark::Wake => supervisor.woken = Some((from, None)),
        }
    }

    /// Says that the call has ended, and whether it was carried out.
    pub(crate) fn ends(&mut self, parent: &str, mark: Mark, done: bool) {
        let to = self.clock.wall(Instant::now());
        let Some(supervisor) = self.supervisors.get_mut(parent) else { return };
        match mark {
            Mark::Retry => supervisor.budget.cleared(to, done),
            Mark::Wake => supervisor.woken = supervisor.woken.map(|(from, _)| (from, Some(to))),
        }
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

    /// Whether a hand may have cut a wait short between these two.
    fn was_woken(&self, from: SystemTime, to: SystemTime) -> bool {
        self.woken.is_some_and(|(begun, ended)| {
            begun <= to + SLACK && ended.is_none_or(|ended| ended + SLACK >= from)
        })
    }
}

/// A path's supervisor, and the child's own name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Where a child comes in its supervisor's order: its name ends in a number, guests come last.
fn position(name: &str) -> u64 {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    match (digits.parse::<u64>(), name.starts_with(crate::layout::GUEST)) {
        (Ok(number), true) => 1_000_000 + number,
        (Ok(number), false) => number,
        (Err(_), _) => u64::MAX,
    }
}
