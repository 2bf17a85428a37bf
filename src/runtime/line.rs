//! Children that are asked to stop one after another, each by the end of the one behind it.
//!
//! When a supervisor or a group stops in order, each child is asked when the one behind it is down. If
//! the supervisor did that itself, there would be two changes of task between two children, and nobody
//! to share the work with. So it lines some up ahead: whoever ends asks the next one, and the
//! supervisor takes in meanwhile what has happened. Nothing is decided here: the machine has
//! [said][order] that it will ask them in this order, whatever becomes of each.
//!
//! # Invariants
//!
//! 1. A child is asked only when the end of the one behind it has been told.
//! 2. A link is for one run of either child, so one that is left over asks nobody.
//! 3. None is left over when nobody stops in order any more.
//!
//! [order]: crate::core::Machine::stops_after

use std::collections::VecDeque;
use std::sync::Arc;

use crate::child::{Run, StopLevel};
use crate::core::{IncarnationNumber, Key};
use crate::sync::{AtomicU8, Mutex, Ordering};

/// So many are lined up at most: what their tasks need is in the caches when it is their turn. With 64
/// an ordered stop takes 7 to 10 % longer, with 240 3 %.
const LENGTH: usize = 128;

/// Room for so many is made at once: more than most supervisors have.
const ROOM: usize = 16;

/// When so many are left, others are lined up behind them. If the line ran out, nobody would be asked
/// until the supervisor has heard of all of them.
const FEW: usize = 64;

const _: () = assert!(FEW < LENGTH && LENGTH <= u8::MAX as usize);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Line {
    /// How many are in it: who ends at other times needs no lock to see that there is nobody.
    left: AtomicU8,
    /// [`FEW`] if there are others who may be lined up, else zero. Only the supervisor knows of it.
    low: AtomicU8,
    links: Mutex<VecDeque<Link>>,
}

/// Who is asked, and by whose end.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) behind: (Key, IncarnationNumber),
    pub(super) run: Arc<Run>,
}

impl Line {
    /// Lines these up, as many as there is room for, instead of those that there are.
    pub(super) fn set(&self, links: impl IntoIterator<Item = Link>) {
        let mut links = links.into_iter().take(LENGTH).peekable();
        if links.peek().is_none() {
            return self.cut();
        }
        let mut lined_up = VecDeque::with_capacity(ROOM);
        lined_up.extend(links);
        self.replace(lined_up);
    }

    /// Nobody is asked any more.
    pub(super) fn cut(&self) {
        // Mostly nobody was lined up, and a turn ends with this.
        if self.left.load(Ordering::Acquire) > 0 {
            self.replace(VecDeque::new());
        }
    }

    fn replace(&self, links: VecDeque<Link>) {
        self.note_others(links.len() == LENGTH);
        let mut held = self.links.lock();
        self.left.store(links.len() as u8, Ordering::Release);
        let before = std::mem::replace(&mut *held, links);
        // Outside of the lock: what a child is made of may do anything when it is dropped.
        drop((held, before));
    }

    /// Behind whom others are to be lined up, if there is room and there are others.
    pub(super) fn end(&self) -> Option<(Key, IncarnationNumber)> {
        let low = self.low.load(Ordering::Relaxed);
        if !(1..=low).contains(&self.left.load(Ordering::Acquire)) {
            return None;
        }
        self.links.lock().back().map(|link| (link.run.key, link.run.incarnation()))
    }

    /// Lines these up behind the [end](Self::end). If that one has ended meanwhile, nobody asks them
    /// but the supervisor.
    pub(super) fn extend(&self, links: impl IntoIterator<Item = Link>) {
        let links: Vec<_> = links.into_iter().take(LENGTH - FEW).collect();
        self.note_others(links.len() == LENGTH - FEW);
        let mut held = self.links.lock();
        held.extend(links);
        self.left.store(held.len() as u8, Ordering::Release);
    }

    fn note_others(&self, others: bool) {
        self.low.store(if others { FEW as u8 } else { 0 }, Ordering::Relaxed);
    }

    /// The end of this run has been told.
    pub(super) fn ended(&self, run: (Key, IncarnationNumber)) {
        if self.left.load(Ordering::Acquire) == 0 {
            return;
        }
        let (next, _room) = {
            let mut links = self.links.lock();
            if links.front().is_none_or(|link| link.behind != run) {
                return;
            }
            let next = links.pop_front();
            self.left.store(links.len() as u8, Ordering::Release);
            // Nothing is kept for the next stop, which may be long in coming.
            (next, links.is_empty().then(|| std::mem::take(&mut *links)))
        };
        if let Some(link) = next {
            link.run.stop(StopLevel::Cancel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::alone;

    /// Their incarnations tell them apart.
    fn runs(number: u32) -> Vec<Arc<Run>> {
        (1..=number).map(alone::run).collect()
    }

    /// Each is asked by the end of the one before.
    fn links(runs: &[Arc<Run>]) -> impl Iterator<Item = Link> {
        let pairs = runs.iter().zip(&runs[1..]);
        pairs.map(|(behind, run)| Link { behind: id(behind), run: Arc::clone(run) })
    }

    /// So many runs, of which all but the first are lined up.
    #[cfg(not(verger_loom))]
    fn lined_up(number: u32) -> (Line, Vec<Arc<Run>>) {
        let (line, runs) = (Line::default(), runs(number));
        line.set(links(&runs));
        (line, runs)
    }

    fn id(run: &Run) -> (Key, IncarnationNumber) {
        (run.key, run.incarnation())
    }

    fn asked(runs: &[Arc<Run>]) -> Vec<bool> {
        runs.iter().map(|run| run.level() == StopLevel::Cancel).collect()
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn each_end_asks_the_next_one() {
        let (line, runs) = lined_up(3);

        line.ended(id(&runs[0]));
        assert_eq!(asked(&runs), [false, true, false]);

        line.ended(id(&runs[1]));
        assert_eq!(asked(&runs), [false, true, true]);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn who_ends_before_his_turn_asks_nobody() {
        let (line, runs) = lined_up(3);

        line.ended(id(&runs[1]));
        assert_eq!(asked(&runs), [false, false, false]);

        line.ended(id(&runs[0]));
        assert_eq!(asked(&runs), [false, true, false]);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn who_is_not_in_the_line_any_more_is_not_asked() {
        let (line, runs) = lined_up(3);
        line.set(links(&runs[1..]));

        line.ended(id(&runs[0]));
        assert_eq!(asked(&runs), [false, false, false]);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn nobody_is_asked_once_the_line_is_cut_or_there_is_nobody_to_line_up() {
        let cuts: [fn(&Line); 2] = [Line::cut, |line| line.set([])];
        for cut in cuts {
            let (line, runs) = lined_up(3);
            cut(&line);

            line.ended(id(&runs[0]));
            assert_eq!(asked(&runs), [false, false, false]);
            assert_eq!(line.links.lock().capacity(), 0);
        }
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn a_line_that_has_come_to_its_end_keeps_no_room() {
        let (line, runs) = lined_up(2);
        line.ended(id(&runs[0]));
        assert_eq!(line.links.lock().capacity(), 0);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn others_are_lined_up_when_there_is_room() {
        let line = Line::default();
        let runs = runs(2 * LENGTH as u32);
        let rest = |end| links(&runs).skip_while(move |link| link.behind != end);
        line.set(links(&runs));
        assert_eq!(line.end(), None, "it is full");

        for run in &runs[..LENGTH - FEW] {
            line.ended(id(run));
        }
        let end = line.end().expect("there is room");
        assert_eq!(end, id(&runs[LENGTH]));
        line.extend(rest(end));
        assert_eq!(line.end(), None, "it is full again");

        for run in &runs[LENGTH - FEW..LENGTH] {
            line.ended(id(run));
        }
        line.extend(rest(line.end().expect("there is room again")));
        assert_eq!(line.end(), None, "there are no others");

        for run in &runs[LENGTH..] {
            line.ended(id(run));
        }
        assert_eq!(asked(&runs[1..]), [true; 2 * LENGTH - 1]);
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_who_ends_while_the_line_is_set_asks_the_next_one_or_is_passed_over() {
        loom::model(|| {
            let line = Arc::new(Line::default());
            let runs = runs(3);
            let (ending, first) = (Arc::clone(&line), id(&runs[0]));
            let ending = loom::thread::spawn(move || ending.ended(first));

            line.set(links(&runs));
            ending.join().unwrap();

            let left = line.links.lock().len();
            assert_eq!(asked(&runs), [false, left == 1, false]);
            assert!(left == 1 || left == 2);
        });
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_who_ends_while_others_are_lined_up_behind_him_asks_the_next_one_or_nobody() {
        loom::model(|| {
            let line = Arc::new(Line::default());
            let runs = runs(3);
            line.set(links(&runs[..2]));
            let (ending, ends) = (Arc::clone(&line), [id(&runs[0]), id(&runs[1])]);
            let ending = loom::thread::spawn(move || ends.map(|run| ending.ended(run)));

            line.extend(links(&runs[1..]));
            ending.join().unwrap();

            let left = line.links.lock().len();
            assert_eq!(asked(&runs), [false, true, left == 0]);
        });
    }
}
