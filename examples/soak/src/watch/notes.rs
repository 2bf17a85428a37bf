//! Checks that need the notes only, and starts whose cause only the notes show.

use std::time::{Duration, Instant};

use verger::Lifecycle;
use verger::policy::StartCause;

use super::budget::SLACK;
use super::lives::Oddity;
use super::{Watch, position, split};
use crate::notes::{Note, What};

/// How long the cause of a start may stay unknown.
const PATIENCE: Duration = Duration::from_secs(5);

/// A start while a sibling was active or activating. It is wrong if both are part of an ordered
/// start, which their notes show later.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) path: String,
    pub(super) incarnation: u32,
    pub(super) at: Instant,
    /// When the supervisor started.
    pub(super) since: Instant,
    pub(super) sibling: String,
    pub(super) sibling_incarnation: u32,
    /// Whether the sibling comes first in start order.
    pub(super) earlier: bool,
    /// Whether the supervisor restarts children together.
    pub(super) grouped: bool,
}

/// A child that was cancelled while a later sibling was alive. It is wrong if the child was cancelled
/// with its group. A child that was not ready in time is cancelled alone.
#[derive(Debug)]
pub(super) struct Suspect {
    path: String,
    incarnation: u32,
    what: String,
}

impl Watch {
    /// Processes notes.
    pub(crate) fn notes(&mut self, notes: Vec<Note>) {
        for note in notes {
            self.note(&note);
        }
        let launches = std::mem::take(&mut self.launches);
        self.launches = launches.into_iter().filter(|launch| !self.judge(launch)).collect();
    }

    fn note(&mut self, note: &Note) {
        let path = note.path.as_str();
        match self.lives.note(note) {
            None => {}
            Some(Oddity::Beside(old)) if old == note.incarnation => {
                let seq = note.seq;
                self.tally
                    .violation(format!("{path}: two lives of incarnation {old} (note {seq})"));
            }
            Some(Oddity::Beside(old)) => {
                let overlap = (path.to_owned(), old);
                if !self.leaks.contains(&overlap) {
                    self.overlapped.insert(overlap);
                }
            }
            Some(Oddity::Wrong(what)) => self.tally.violation(format!("{path}: {what}")),
        }
        if let What::Cancelled { alone: false } = note.what {
            self.cancelled(note);
        }
    }

    /// Checks that all later siblings are down when a child is cancelled with its group or supervisor.
    fn cancelled(&mut self, note: &Note) {
        let path = note.path.as_str();
        let (parent, name) = split(path);
        let Some(rules) = self.plan.supervisors.get(parent) else { return };
        if !rules.dynamic && !self.plan.leaky {
            // A call may start a child that was down already before all others are down.
            let later = self.lives.living_below(parent).find(|(it, life)| {
                position(it) > position(name) && life.cause != StartCause::Manual
            });
            let suspect = later.map(|(later, life)| {
                let what = format!("{path}: cancelled before {later}, which is {life:?}");
                Suspect { path: path.to_owned(), incarnation: note.incarnation, what }
            });
            if let Some(suspect) = suspect {
                self.suspect(suspect);
            }
        }
        if self.stopping {
            let place = place(parent);
            if let Some(later) = self.lives.populated().find(|it| self::place(it) > place) {
                let what = format!("{path}: cancelled while children of {later} live");
                self.tally.violation(what);
            }
        }
    }

    /// Checks a cancelled child whose cause is in an event that may not have arrived yet.
    fn suspect(&mut self, suspect: Suspect) {
        let (parent, name) = split(&suspect.path);
        let seen = self.supervisors.get(parent).and_then(|it| it.children.get(name));
        let seen = seen.filter(|seen| seen.incarnation == Some(suspect.incarnation));
        match seen.and_then(|seen| seen.state) {
            Some(Lifecycle::Deactivating) => self.tally.violation(suspect.what),
            None | Some(Lifecycle::Activating | Lifecycle::Active) => self.suspects.push(suspect),
            Some(_) => {}
        }
    }

    /// Decides pending checks when a child enters a state.
    pub(super) fn confirm(&mut self, path: &str, incarnation: u32, state: Lifecycle) {
        if matches!(state, Lifecycle::Activating | Lifecycle::Active) || self.suspects.is_empty() {
            return;
        }
        let tally = &self.tally;
        self.suspects.retain(|suspect| {
            let same = suspect.path == path && suspect.incarnation == incarnation;
            if same && state == Lifecycle::Deactivating {
                tally.violation(&suspect.what);
            }
            !same
        });
    }

    /// Decides a start, if its cause is known, and reports it if it was out of order.
    fn judge(&self, launch: &Launch) -> bool {
        let Launch { path, incarnation, at, since, sibling, earlier, grouped, .. } = launch;
        let by = *at + PATIENCE;
        let life = self.lives.of(path, *incarnation, by);
        let Some(life) = life.filter(|life| life.begun + SLACK >= *at) else {
            return at.elapsed() > PATIENCE;
        };
        let in_turn = |cause| match cause {
            StartCause::Initial | StartCause::Group => true,
            StartCause::Restart => *grouped,
            _ => false,
        };
        let known = self.lives.of(sibling, launch.sibling_incarnation, *at + SLACK);
        let known = known.filter(|life| life.begun >= *since);
        let sibling_in_turn = known.is_some_and(|life| in_turn(life.cause));
        let started_manually = self.lives.started_manually_since(sibling, *since);
        if in_turn(life.cause) && sibling_in_turn && !started_manually {
            let (cause, order) = (life.cause, if *earlier { "before" } else { "after" });
            self.tally.violation(format!(
                "{path}: started ({cause}) while {sibling} was not down or up, which comes {order} it"
            ));
        }
        true
    }
}

/// Returns the position of a supervisor in its zone.
fn place(path: &str) -> [u64; 2] {
    let mut names = path.split('/').skip(2).map(position);
    [names.next().unwrap_or(0), names.next().unwrap_or(0)]
}
