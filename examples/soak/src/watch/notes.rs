//! What the notes alone tell, and with them the causes of starts that events don't tell.

use std::time::{Duration, Instant};

use verger::{Lifecycle, StartCause};

use super::budget::SLACK;
use super::lives::Oddity;
use super::{Watch, position, split};
use crate::notes::{Note, What};

/// A start whose cause isn't known for so long will never be noted.
const PATIENCE: Duration = Duration::from_secs(5);

/// A child was started although a sibling was up or on its way. That is wrong if both were started
/// in the order of their positions, which their own notes will tell.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) path: String,
    pub(super) incarnation: u32,
    pub(super) at: Instant,
    /// When its supervisor began.
    pub(super) since: Instant,
    pub(super) sibling: String,
    pub(super) sibling_incarnation: u32,
    /// The sibling comes before it; otherwise behind.
    pub(super) earlier: bool,
    /// Its supervisor restarts children together.
    pub(super) grouped: bool,
}

/// A child was asked to stop although one behind it lives. That is wrong if it was asked with its
/// group; a child that was not ready in time is asked by itself.
#[derive(Debug)]
pub(super) struct Suspect {
    path: String,
    incarnation: u32,
    what: String,
}

impl Watch {
    /// Takes in notes.
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
        if let What::Asked { alone: false } = note.what {
            self.asked(note);
        }
    }

    /// A child is asked to stop with its group or its supervisor: whoever comes behind it is down.
    fn asked(&mut self, note: &Note) {
        let path = note.path.as_str();
        let (parent, name) = split(path);
        let Some(rules) = self.plan.supervisors.get(parent) else { return };
        if !rules.dynamic && !self.plan.leaky {
            // One that was down already may be started again by hand before all others are down.
            let later = self.lives.living_below(parent).find(|(it, life)| {
                position(it) > position(name) && life.cause != StartCause::Manual
            });
            let suspect = later.map(|(later, life)| {
                let what = format!("{path}: asked to stop before {later}, which is {life:?}");
                Suspect { path: path.to_owned(), incarnation: note.incarnation, what }
            });
            if let Some(suspect) = suspect {
                self.suspect(suspect);
            }
        }
        if self.stopping {
            let place = place(parent);
            if let Some(later) = self.lives.populated().find(|it| self::place(it) > place) {
                let what = format!("{path}: asked to stop while children of {later} live");
                self.tally.violation(what);
            }
        }
    }

    /// What a child is asked to stop for is told by an event, which may have come or not.
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

    /// A child has come to a state: was it asked to stop for its group, or because it failed?
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

    /// Whether it is known what to make of a start; if it was out of turn, says so.
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
        let by_hand = self.lives.by_hand_since(sibling, *since);
        if in_turn(life.cause) && sibling_in_turn && !by_hand {
            let (cause, order) = (life.cause, if *earlier { "before" } else { "after" });
            self.tally.violation(format!(
                "{path}: started ({cause}) while {sibling} was not down or up, which comes {order} it"
            ));
        }
        true
    }
}

/// Where a supervisor comes in its zone.
fn place(path: &str) -> [u64; 2] {
    let mut names = path.split('/').skip(2).map(position);
    [names.next().unwrap_or(0), names.next().unwrap_or(0)]
}
