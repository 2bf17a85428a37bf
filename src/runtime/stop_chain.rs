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
//! 2. The chain consists of incarnations, so one that is left over cancels nothing.
//! 3. The chain is empty once no ordered stop is under way.
//! 4. The first child of the chain is the one whose exit the stop waits for. A child that isn't cancelled
//!    but aborted at once, and a supervisor that stops all children at once, have no chain.
//!
//! [order]: crate::core::Machine::stops_after

use std::collections::VecDeque;
use std::sync::Arc;

use crate::child::{Incarnation, StopLevel};
use crate::core::{IncarnationNumber, Key};
use crate::sync::{AtomicU8, Mutex, Ordering};

/// How many children the chain holds at most.
const LENGTH: usize = 128;

/// The chain is extended when it is shorter than this, before it runs out.
const SHORT: usize = 64;

const _: () = assert!(SHORT < LENGTH && LENGTH <= u8::MAX as usize);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct StopChain {
    /// The number of children, so that an exit outside of a stop takes no lock.
    len: AtomicU8,
    chain: Mutex<Chain>,
}

#[derive(Debug, Default)]
struct Chain {
    /// The exit of each cancels the next one.
    children: VecDeque<Arc<Incarnation>>,
    /// Whether there may be more children to link than there was room for.
    more: bool,
}

type IncarnationId = (Key, IncarnationNumber);

fn id(incarnation: &Arc<Incarnation>) -> IncarnationId {
    (incarnation.key, incarnation.number)
}

impl StopChain {
    /// Replaces the chain, by the child that is being cancelled and as many behind it as there is room
    /// for.
    pub(super) fn replace(&self, children: impl IntoIterator<Item = Arc<Incarnation>>) {
        let children: VecDeque<_> = children.into_iter().take(LENGTH).collect();
        let more = children.len() == LENGTH;
        let len = children.len() as u8;
        let replaced = {
            let mut held = self.chain.lock();
            self.len.store(len, Ordering::Release);
            std::mem::replace(&mut *held, Chain { children, more })
        };
        // Outside of the lock: dropping a child's properties may run foreign code.
        drop(replaced);
    }

    pub(super) fn clear(&self) {
        if self.len.load(Ordering::Acquire) > 0 {
            self.replace([]);
        }
    }

    /// Returns the child whose exit the stop waits for.
    pub(super) fn awaited(&self) -> Option<Arc<Incarnation>> {
        self.chain.lock().children.front().cloned()
    }

    /// Returns the last child of the chain, if more children should be linked behind it.
    pub(super) fn extensible_end(&self) -> Option<IncarnationId> {
        if !(1..=SHORT).contains(&usize::from(self.len.load(Ordering::Acquire))) {
            return None;
        }
        let held = self.chain.lock();
        held.children.back().filter(|_| held.more).map(id)
    }

    /// Appends children behind the [end](Self::extensible_end).
    pub(super) fn extend(&self, children: impl IntoIterator<Item = Arc<Incarnation>>) {
        let children: Vec<_> = children.into_iter().take(LENGTH - SHORT).collect();
        let mut held = self.chain.lock();
        held.more = children.len() == LENGTH - SHORT;
        held.children.extend(children);
        self.len.store(held.children.len() as u8, Ordering::Release);
    }

    /// Cancels the child that is linked behind this incarnation, whose exit was just pushed.
    pub(super) fn exited(&self, incarnation: IncarnationId) {
        if self.len.load(Ordering::Acquire) == 0 {
            return;
        }
        // Both are used outside of the lock, because wakers and properties run foreign code.
        let (exited, next) = {
            let mut held = self.chain.lock();
            if held.children.front().is_none_or(|first| id(first) != incarnation) {
                return;
            }
            let exited = held.children.pop_front();
            self.len.store(held.children.len() as u8, Ordering::Release);
            if held.children.is_empty() {
                held.children = VecDeque::new();
            }
            (exited, held.children.front().cloned())
        };
        drop(exited);
        if let Some(next) = next {
            next.cell.raise(StopLevel::Cancel);
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

    fn cancelled(incarnations: &[Arc<Incarnation>]) -> Vec<bool> {
        let cancelled = |it: &Arc<Incarnation>| it.cell.level() == StopLevel::Cancel;
        incarnations.iter().map(cancelled).collect()
    }

    #[cfg(not(verger_loom))]
    mod sequential {
        use super::*;

        fn chain_of(count: u32) -> (StopChain, Vec<Arc<Incarnation>>) {
            let (chain, incarnations) = (StopChain::default(), incarnations(count));
            chain.replace(incarnations.clone());
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
            chain.replace(children[1..].to_vec());

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
                assert_eq!(chain.chain.lock().children.capacity(), 0);
            }

            let (chain, children) = chain_of(2);
            for child in &children {
                chain.exited(id(child));
            }
            assert_eq!(chain.chain.lock().children.capacity(), 0);
        }

        #[test]
        fn the_first_child_is_awaited() {
            let (chain, children) = chain_of(2);
            let awaited = || chain.awaited().map(|it| id(&it));

            assert_eq!(awaited(), Some(id(&children[0])));
            chain.exited(id(&children[0]));
            assert_eq!(awaited(), Some(id(&children[1])));
            chain.exited(id(&children[1]));
            assert_eq!(awaited(), None);
        }

        #[test]
        fn the_chain_is_extended_when_it_is_short() {
            let chain = StopChain::default();
            let children = incarnations(2 * LENGTH as u32 - 1);
            let rest = |end| children.iter().skip_while(move |it| id(it) != end).skip(1).cloned();
            chain.replace(children.clone());
            assert_eq!(chain.extensible_end(), None, "it is full");

            for child in &children[..LENGTH - SHORT] {
                chain.exited(id(child));
            }
            let end = chain.extensible_end().expect("there is room");
            assert_eq!(end, id(&children[LENGTH - 1]));
            chain.extend(rest(end));
            assert_eq!(chain.extensible_end(), None, "it is full again");

            for child in &children[LENGTH - SHORT..LENGTH] {
                chain.exited(id(child));
            }
            chain.extend(rest(chain.extensible_end().expect("there is room again")));

            for child in &children[LENGTH..] {
                chain.exited(id(child));
                assert_eq!(chain.extensible_end(), None, "no children are left");
            }
            assert_eq!(cancelled(&children[1..]), [true; 2 * LENGTH - 2]);
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

            chain.replace(children.clone());
            exiting.join().unwrap();

            let left = chain.chain.lock().children.len();
            assert_eq!(cancelled(&children), [false, left == 2, false]);
            assert!(left == 2 || left == 3);
        });
    }

    #[cfg(verger_loom)]
    #[test]
    fn loom_an_exit_while_the_chain_is_extended_cancels_the_next_child_or_none() {
        loom::model(|| {
            let chain = Arc::new(StopChain::default());
            let children = incarnations(3);
            chain.replace(children[..2].to_vec());
            let (exiting, ids) = (Arc::clone(&chain), [id(&children[0]), id(&children[1])]);
            let exiting = loom::thread::spawn(move || ids.map(|id| exiting.exited(id)));

            chain.extend(children[2..].to_vec());
            exiting.join().unwrap();

            assert_eq!(chain.awaited().map(|it| id(&it)), Some(id(&children[2])));
            assert_eq!(cancelled(&children[..2]), [false, true]);
        });
    }
}
