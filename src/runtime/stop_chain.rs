//! The stop chain: children of an ordered stop that cancel each other.
//!
//! In an ordered stop each child is cancelled when the one behind it has exited. If only the
//! supervisor cancelled children, each step would take two task switches. So the supervisor links
//! some children ahead: the exit of one cancels the next one directly, while the supervisor handles
//! the exits in batches. The machine has already [determined][order] the order, so no decision is made
//! here. A broken chain costs only time: the supervisor cancels the next child itself when it handles
//! the exit. perf: budgets row "ordered stop"
//!
//! # Invariants
//!
//! 1. A child is cancelled only after the exit of the child behind it was pushed into the inbox.
//! 2. A link connects two incarnations, so a link that is left over cancels nothing.
//! 3. The chain is empty once no ordered stop is under way.
//!
//! [order]: crate::core::Machine::stops_after

use std::collections::VecDeque;
use std::sync::Arc;

use crate::child::{Incarnation, StopLevel};
use crate::core::{IncarnationNumber, Key};
use crate::sync::{AtomicU8, Mutex, Ordering};

/// How many links the chain holds at most.
const LENGTH: usize = 128;

/// The chain is extended when it is shorter than this, before it runs out.
const SHORT: usize = 64;

const _: () = assert!(SHORT < LENGTH && LENGTH <= u8::MAX as usize);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct StopChain {
    /// The number of links, so that an exit outside of a stop takes no lock.
    len: AtomicU8,
    links: Mutex<ChainLinks>,
}

#[derive(Debug, Default)]
struct ChainLinks {
    links: VecDeque<Link>,
    /// Whether more children were to be linked than there was room for.
    more: bool,
}

/// A child, and the incarnation whose exit cancels it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) after: (Key, IncarnationNumber),
    pub(super) next: Arc<Incarnation>,
}

impl StopChain {
    /// Replaces the chain, with as many links as there is room for.
    pub(super) fn replace(&self, links: impl IntoIterator<Item = Link>) {
        let links: VecDeque<_> = links.into_iter().take(LENGTH).collect();
        let more = links.len() == LENGTH;
        let len = links.len() as u8;
        let replaced = {
            let mut held = self.links.lock();
            self.len.store(len, Ordering::Release);
            std::mem::replace(&mut *held, ChainLinks { links, more })
        };
        // Outside of the lock: dropping a child's properties may run foreign code.
        drop(replaced);
    }

    pub(super) fn clear(&self) {
        if self.len.load(Ordering::Acquire) > 0 {
            self.replace([]);
        }
    }

    /// Returns the last incarnation of the chain, if more children should be linked behind it.
    pub(super) fn extensible_end(&self) -> Option<(Key, IncarnationNumber)> {
        if !(1..=SHORT).contains(&usize::from(self.len.load(Ordering::Acquire))) {
            return None;
        }
        let held = self.links.lock();
        let last = held.links.back().filter(|_| held.more)?;
        Some((last.next.key, last.next.number))
    }

    /// Appends links behind the [end](Self::extensible_end).
    pub(super) fn extend(&self, links: impl IntoIterator<Item = Link>) {
        let links: Vec<_> = links.into_iter().take(LENGTH - SHORT).collect();
        let mut held = self.links.lock();
        held.more = links.len() == LENGTH - SHORT;
        held.links.extend(links);
        self.len.store(held.links.len() as u8, Ordering::Release);
    }

    /// Cancels the child that is linked behind this incarnation, whose exit was just pushed.
    pub(super) fn exited(&self, incarnation: (Key, IncarnationNumber)) {
        if self.len.load(Ordering::Acquire) == 0 {
            return;
        }
        let link = {
            let mut held = self.links.lock();
            if held.links.front().is_none_or(|link| link.after != incarnation) {
                return;
            }
            let link = held.links.pop_front();
            self.len.store(held.links.len() as u8, Ordering::Release);
            if held.links.is_empty() {
                held.links = VecDeque::new();
            }
            link
        };
        if let Some(link) = link {
            link.next.cell.raise(StopLevel::Cancel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::orphan;

    /// Incarnations with different numbers.
    fn incarnations(count: u32) -> Vec<Arc<Incarnation>> {
        (1..=count).map(orphan::incarnation).collect()
    }

    /// Each is linked behind the one before.
    fn links(incarnations: &[Arc<Incarnation>]) -> impl Iterator<Item = Link> {
        let pairs = incarnations.iter().zip(&incarnations[1..]);
        pairs.map(|(after, next)| Link { after: id(after), next: Arc::clone(next) })
    }

    fn id(incarnation: &Incarnation) -> (Key, IncarnationNumber) {
        (incarnation.key, incarnation.number)
    }

    fn cancelled(incarnations: &[Arc<Incarnation>]) -> Vec<bool> {
        let cancelled = |it: &Arc<Incarnation>| it.cell.level() == StopLevel::Cancel;
        incarnations.iter().map(cancelled).collect()
    }

    #[cfg(not(verger_loom))]
    mod sequential {
        use super::*;

        fn chain_of(count: u32) -> (StopChain, Vec<Arc<Incarnation>>) {
            let (chain, incarnations) = (StopChain::default(), incarnations(count));
            chain.replace(links(&incarnations));
            (chain, incarnations)
        }

        #[test]
        fn each_exit_cancels_the_next_child() {
            let (chain, children) = chain_of(3);

            chain.exited(id(&children[0]));
            assert_eq!(cancelled(&children), [false, true, false]);

            chain.exited(id(&children[1]));
            assert_eq!(cancelled(&children), [false, true, true]);
        }

        #[test]
        fn an_exit_out_of_order_cancels_no_child() {
            let (chain, children) = chain_of(3);

            chain.exited(id(&children[1]));
            assert_eq!(cancelled(&children), [false, false, false]);

            chain.exited(id(&children[0]));
            assert_eq!(cancelled(&children), [false, true, false]);
        }

        #[test]
        fn a_child_that_is_no_longer_in_the_chain_is_not_cancelled() {
            let (chain, children) = chain_of(3);
            chain.replace(links(&children[1..]));

            chain.exited(id(&children[0]));
            assert_eq!(cancelled(&children), [false, false, false]);
        }

        #[test]
        fn an_empty_chain_cancels_no_child_and_holds_no_memory() {
            let empties: [fn(&StopChain); 2] = [StopChain::clear, |chain| chain.replace([])];
            for empty in empties {
                let (chain, children) = chain_of(3);
                empty(&chain);

                chain.exited(id(&children[0]));
                assert_eq!(cancelled(&children), [false, false, false]);
                assert_eq!(chain.links.lock().links.capacity(), 0);
            }

            let (chain, children) = chain_of(2);
            chain.exited(id(&children[0]));
            assert_eq!(chain.links.lock().links.capacity(), 0);
        }

        #[test]
        fn the_chain_is_extended_when_it_is_short() {
            let chain = StopChain::default();
            let children = incarnations(2 * LENGTH as u32);
            let rest = |end| links(&children).skip_while(move |link| link.after != end);
            chain.replace(links(&children));
            assert_eq!(chain.extensible_end(), None, "it is full");

            for child in &children[..LENGTH - SHORT] {
                chain.exited(id(child));
            }
            let end = chain.extensible_end().expect("there is room");
            assert_eq!(end, id(&children[LENGTH]));
            chain.extend(rest(end));
            assert_eq!(chain.extensible_end(), None, "it is full again");

            for child in &children[LENGTH - SHORT..LENGTH] {
                chain.exited(id(child));
            }
            chain.extend(rest(chain.extensible_end().expect("there is room again")));
            assert_eq!(chain.extensible_end(), None, "no children are left");

            for child in &children[LENGTH..] {
                chain.exited(id(child));
            }
            assert_eq!(cancelled(&children[1..]), [true; 2 * LENGTH - 1]);
        }
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_an_exit_while_the_chain_is_replaced_cancels_the_next_child_or_none() {
        loom::model(|| {
            let chain = Arc::new(StopChain::default());
            let children = incarnations(3);
            let (exiting, first) = (Arc::clone(&chain), id(&children[0]));
            let exiting = loom::thread::spawn(move || exiting.exited(first));

            chain.replace(links(&children));
            exiting.join().unwrap();

            let left = chain.links.lock().links.len();
            assert_eq!(cancelled(&children), [false, left == 1, false]);
            assert!(left == 1 || left == 2);
        });
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_an_exit_while_the_chain_is_extended_cancels_the_next_child_or_none() {
        loom::model(|| {
            let chain = Arc::new(StopChain::default());
            let children = incarnations(3);
            chain.replace(links(&children[..2]));
            let (exiting, ids) = (Arc::clone(&chain), [id(&children[0]), id(&children[1])]);
            let exiting = loom::thread::spawn(move || ids.map(|id| exiting.exited(id)));

            chain.extend(links(&children[1..]));
            exiting.join().unwrap();

            let left = chain.links.lock().links.len();
            assert_eq!(cancelled(&children), [false, true, left == 0]);
        });
    }
}
