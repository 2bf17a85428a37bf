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
//!
//! [order]: crate::machine::Machine::stops_after

use std::collections::VecDeque;
use std::sync::Arc;

use crate::child::{Run, StopLevel};
use crate::machine::{Incarnation, Key};
use crate::sync::{AtomicU8, Mutex, Ordering};

/// So many are lined up at once. When they are over, nobody is asked until the supervisor has heard of
/// all of them: with a line of 64, an ordered stop of many children takes a third longer.
pub(super) const LENGTH: usize = 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Whether there is anybody in it: who ends at other times needs no lock to see that.
    waits: AtomicU8,
    links: Mutex<VecDeque<Link>>,
}

/// Who is asked, and by whose end.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) behind: (Key, Incarnation),
    pub(super) run: Arc<Run>,
}

impl Line {
    /// Lines these up instead of those that there are.
    pub(super) fn set(&self, links: impl IntoIterator<Item = Link>) {
        let links: VecDeque<_> = links.into_iter().collect();
        let mut held = self.links.lock();
        self.waits.store(u8::from(!links.is_empty()), Ordering::Release);
        let before = std::mem::replace(&mut *held, links);
        // Outside of the lock: what a child is made of may do anything when it is dropped.
        drop((held, before));
    }

    /// The end of this run has been told.
    pub(super) fn ended(&self, run: (Key, Incarnation)) {
        if self.waits.load(Ordering::Acquire) == 0 {
            return;
        }
        let next = {
            let mut links = self.links.lock();
            if links.front().is_none_or(|link| link.behind != run) {
                return;
            }
            let next = links.pop_front();
            self.waits.store(u8::from(!links.is_empty()), Ordering::Release);
            next
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

    /// Each is asked by the end of the one before.
    fn links(runs: &[Arc<Run>]) -> Vec<Link> {
        let pairs = runs.iter().zip(&runs[1..]);
        pairs.map(|(behind, run)| Link { behind: id(behind), run: Arc::clone(run) }).collect()
    }

    fn id(run: &Run) -> (Key, Incarnation) {
        (run.key, run.incarnation)
    }

    fn is_asked(run: &Arc<Run>) -> bool {
        run.level() == StopLevel::Cancel
    }

    // Their incarnations tell them apart.
    fn runs() -> [Arc<Run>; 3] {
        [1, 2, 3].map(alone::run)
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn each_end_asks_the_next_one() {
        let line = Line::default();
        let runs = runs();
        line.set(links(&runs));

        line.ended(id(&runs[0]));
        assert_eq!(runs.each_ref().map(is_asked), [false, true, false]);

        line.ended(id(&runs[1]));
        assert_eq!(runs.each_ref().map(is_asked), [false, true, true]);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn who_ends_before_his_turn_asks_nobody() {
        let line = Line::default();
        let runs = runs();
        line.set(links(&runs));

        line.ended(id(&runs[1]));
        assert_eq!(runs.each_ref().map(is_asked), [false, false, false]);

        line.ended(id(&runs[0]));
        assert_eq!(runs.each_ref().map(is_asked), [false, true, false]);
    }

    #[cfg(not(verger_loom))]
    #[test]
    fn who_is_not_in_the_line_any_more_is_not_asked() {
        let line = Line::default();
        let runs = runs();
        line.set(links(&runs));
        line.set(links(&runs[1..]));

        line.ended(id(&runs[0]));
        assert_eq!(runs.each_ref().map(is_asked), [false, false, false]);
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_who_ends_while_the_line_is_set_asks_the_next_one_or_is_passed_over() {
        loom::model(|| {
            let line = Arc::new(Line::default());
            let runs = runs();
            let (ending, first) = (Arc::clone(&line), id(&runs[0]));
            let ending = loom::thread::spawn(move || ending.ended(first));

            line.set(links(&runs));
            ending.join().unwrap();

            assert!(!is_asked(&runs[2]));
            let left = line.links.lock().len();
            assert_eq!((is_asked(&runs[1]), left), if left == 1 { (true, 1) } else { (false, 2) });
        });
    }
}
