//! The lives that children have noted: who lives, and how the last ones ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use verger::StartCause;

use super::split;
use crate::notes::{Fate, Note, What};

/// Lives that are kept of each child, for events that come late.
const KEPT: usize = 3;
/// An event of an end may come so long after it.
const RECENT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) incarnation: u32,
    pub(super) begun: Instant,
    pub(super) cause: StartCause,
    pub(super) signals: bool,
    pub(super) ready: bool,
    pub(super) asked: bool,
    pub(super) fate: Option<Fate>,
    returned: bool,
    deactivated: u32,
    ended: Option<Instant>,
}

/// What a note says that can't be, or only under conditions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// It began while this incarnation lived.
    Beside(u32),
    Wrong(String),
}

/// A child that has lived.
#[derive(Debug, Default)]
struct Record {
    lives: Vec<Life>,
    /// When it was last started by hand.
    by_hand: Option<Instant>,
}

/// All children of one zone, by supervisor and name.
#[derive(Debug, Default)]
pub(super) struct Lives {
    nests: HashMap<String, HashMap<String, Record>>,
}

impl Lives {
    /// Takes in a note, and returns what is odd about it.
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

    /// The last life of this incarnation that had begun by then.
    pub(super) fn of(&self, path: &str, incarnation: u32, by: Instant) -> Option<&Life> {
        self.at(path, incarnation, by).last()
    }

    /// The lives of this incarnation that may have been going on, or just have ended: one, unless
    /// the supervisor was restarted in that moment and so began to count anew.
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

    /// The lives of a child that go on.
    pub(super) fn living_of(&self, path: &str) -> impl Iterator<Item = &Life> {
        self.record(path).into_iter().flat_map(Record::living)
    }

    /// The children of a supervisor that live, by name.
    pub(super) fn living_below(&self, parent: &str) -> impl Iterator<Item = (&str, &Life)> {
        let nest = self.nests.get(parent).into_iter().flatten();
        nest.flat_map(|(name, record)| record.living().map(|life| (&**name, life)))
    }

    /// The supervisors that have children which live.
    pub(super) fn populated(&self) -> impl Iterator<Item = &str> {
        let nests = self.nests.iter();
        let nests = nests.filter(|(_, nest)| nest.values().any(|it| it.living().next().is_some()));
        nests.map(|(parent, _)| &**parent)
    }

    /// Whether the child was started by hand since then.
    pub(super) fn by_hand_since(&self, path: &str, since: Instant) -> bool {
        self.record(path).and_then(|record| record.by_hand).is_some_and(|at| at >= since)
    }

    /// Forgets a child that doesn't live.
    pub(super) fn forget(&mut self, path: &str) {
        let (parent, name) = split(path);
        if let Some(nest) = self.nests.get_mut(parent)
            && nest.get(name).is_some_and(|record| record.living().next().is_none())
        {
            nest.remove(name);
        }
    }

    /// Forgets who doesn't live and isn't among these.
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
            self.by_hand = Some(note.at);
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
            asked: false,
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
            What::Asked { .. } => std::mem::replace(&mut self.asked, true),
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

    /// Whether an incarnation that lived like this may end for such a reason.
    pub(super) fn may_end_as(&self, kind: &str) -> bool {
        if matches!(kind, "killed" | "aborted" | "activation_timed_out") {
            return true;
        }
        match self.fate {
            Some(Fate::Error) => matches!(kind, "failed" | "activation_failed"),
            Some(Fate::Panic) => kind == "panicked",
            Some(Fate::Normal) => matches!(kind, "normal" | "shutdown"),
            Some(Fate::StopSelf | Fate::Decline | Fate::Hang) => kind == "shutdown",
            None => self.asked && kind == "shutdown",
        }
    }
}
