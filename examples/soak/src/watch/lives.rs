//! The lives that children have noted: those in progress, and how the last ones ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use verger::policy::StartCause;

use super::split;
use crate::notes::{Fate, Note, What};

/// How many lives are kept for each child, for late events.
const KEPT: usize = 3;
/// How late the event of an end may arrive.
const RECENT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) incarnation: u32,
    pub(super) begun: Instant,
    pub(super) cause: StartCause,
    pub(super) signals: bool,
    pub(super) ready: bool,
    pub(super) cancelled: bool,
    pub(super) fate: Option<Fate>,
    returned: bool,
    deactivated: u32,
    ended: Option<Instant>,
}

/// A note that is wrong, or only right under conditions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// The child started while this incarnation was alive.
    Beside(u32),
    Wrong(String),
}

/// The lives of one child.
#[derive(Debug, Default)]
struct Record {
    lives: Vec<Life>,
    /// When the child was last started by a call.
    started_manually: Option<Instant>,
}

/// The lives of all children of one zone, by supervisor and name.
#[derive(Debug, Default)]
pub(super) struct Lives {
    nests: HashMap<String, HashMap<String, Record>>,
}

impl Lives {
    /// Processes a note, and returns what is wrong with it.
    pub(super) fn note(&mut self, note: &Note) -> Option<Oddity> {
        let (parent, name) = split(note.path.as_str());
        if !self.nests.contains_key(parent) {
            self.nests.insert(parent.to_owned(), HashMap::new());
        }
        let nest = self.nests.get_mut(parent)?;
        if !nest.contains_key(name) {
            nest.insert(name.to_owned(), Record::default());
        }
        let record = nest.get_mut(name)?;
        if let What::Begun { cause, signals } = note.what {
            return record.begin(note, cause, signals).map(Oddity::Beside);
        }
        let mut lives = record.lives.iter_mut().rev();
        match lives.find(|it| it.incarnation == note.incarnation && it.ended.is_none()) {
            Some(life) => life.note(note).map(Oddity::Wrong),
            None => Some(Oddity::Wrong(format!("{:?} of a life that is over", note.what))),
        }
    }

    fn record(&self, path: &str) -> Option<&Record> {
        let (parent, name) = split(path);
        self.nests.get(parent)?.get(name)
    }

    /// Returns the last life of this incarnation that had begun by then.
    pub(super) fn of(&self, path: &str, incarnation: u32, by: Instant) -> Option<&Life> {
        self.at(path, incarnation, by).last()
    }

    /// Returns the lives of this incarnation that were in progress or had just ended: one, unless
    /// the supervisor restarted at that moment, which resets the numbers of incarnations.
    pub(super) fn at(
        &self,
        path: &str,
        incarnation: u32,
        at: Instant,
    ) -> impl Iterator<Item = &Life> {
        let lives = self.record(path).into_iter().flat_map(|record| &record.lives);
        lives.filter(move |life| {
            let recent = life.ended.is_none_or(|ended| ended + RECENT >= at);
            life.incarnation == incarnation && life.begun <= at && recent
        })
    }

    /// Returns the lives of a child that are in progress.
    pub(super) fn living_of(&self, path: &str) -> impl Iterator<Item = &Life> {
        self.record(path).into_iter().flat_map(Record::living)
    }

    /// Returns the names of a supervisor's children that are alive.
    pub(super) fn living_below(&self, parent: &str) -> impl Iterator<Item = (&str, &Life)> {
        let nest = self.nests.get(parent).into_iter().flatten();
        nest.flat_map(|(name, record)| record.living().map(|life| (&**name, life)))
    }

    /// Returns the supervisors that have children that are alive.
    pub(super) fn populated(&self) -> impl Iterator<Item = &str> {
        let nests = self.nests.iter();
        let nests = nests.filter(|(_, nest)| nest.values().any(|it| it.living().next().is_some()));
        nests.map(|(parent, _)| &**parent)
    }

    /// Whether the child was started by a call since then.
    pub(super) fn started_manually_since(&self, path: &str, since: Instant) -> bool {
        self.record(path).and_then(|record| record.started_manually).is_some_and(|at| at >= since)
    }

    /// Removes a child that isn't alive.
    pub(super) fn forget(&mut self, path: &str) {
        let (parent, name) = split(path);
        if let Some(nest) = self.nests.get_mut(parent)
            && nest.get(name).is_some_and(|record| record.living().next().is_none())
        {
            nest.remove(name);
        }
    }

    /// Removes the children that aren't alive and aren't listed here.
    pub(super) fn keep(&mut self, known: impl Fn(&str, &str) -> bool) {
        for (parent, nest) in &mut self.nests {
            nest.retain(|name, it| it.living().next().is_some() || known(parent, name));
        }
    }
}

impl Record {
    fn begin(&mut self, note: &Note, cause: StartCause, signals: bool) -> Option<u32> {
        let beside = self.living().map(|life| life.incarnation).last();
        if cause == StartCause::Manual {
            self.started_manually = Some(note.at);
        }
        while self.lives.len() >= KEPT && self.lives[0].ended.is_some() {
            self.lives.remove(0);
        }
        self.lives.push(Life {
            incarnation: note.incarnation,
            begun: note.at,
            cause,
            signals,
            ready: false,
            cancelled: false,
            fate: None,
            returned: false,
            deactivated: 0,
            ended: None,
        });
        beside
    }

    fn living(&self) -> impl Iterator<Item = &Life> {
        self.lives.iter().filter(|life| life.ended.is_none())
    }
}

impl Life {
    fn note(&mut self, note: &Note) -> Option<String> {
        let what = note.what;
        let wrong = match what {
            What::Begun { .. } => return None,
            What::Ready => std::mem::replace(&mut self.ready, true),
            What::Cancelled { .. } => std::mem::replace(&mut self.cancelled, true),
            What::Ends(fate) => {
                self.fate = Some(fate);
                false
            }
            What::Returned => std::mem::replace(&mut self.returned, true),
            What::Deactivated => {
                self.deactivated += 1;
                self.deactivated > 1 || !self.ready || self.fate == Some(Fate::Panic)
            }
            What::Ended => {
                self.ended = Some(note.at);
                self.returned && self.deactivated == 0
            }
        };
        wrong.then(|| format!("{what:?} does not fit {self:?}"))
    }

    /// Whether an incarnation with these notes may end for this reason.
    pub(super) fn may_end_as(&self, kind: &str) -> bool {
        if matches!(kind, "killed" | "aborted" | "activation_timed_out") {
            return true;
        }
        match self.fate {
            Some(Fate::Error) => matches!(kind, "failed" | "activation_failed"),
            Some(Fate::Panic) => kind == "panicked",
            Some(Fate::Normal) => matches!(kind, "normal" | "shutdown"),
            Some(Fate::StopSelf | Fate::Decline | Fate::Hang) => kind == "shutdown",
            None => self.cancelled && kind == "shutdown",
        }
    }
}
