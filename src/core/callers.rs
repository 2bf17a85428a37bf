//! Callers that wait for what becomes of a child.
//!
//! Knows the tickets of the callers and what each waits for. It does not know the answers.
//!
//! Callers that *seek* a child are kept apart: they have requested nothing, so they change neither how a
//! start is answered nor how a failure is handled. They are answered when the child is Active, or when
//! nothing brings it up any more.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChildAnswer, ChildState, Key, Machine, StepCx, Ticket, each};
use crate::lifecycle::Lifecycle;

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WaitFor {
    /// The first start of a child that was just added. The child is removed if that fails.
    Started,
    /// The start of a stopped child. The child stays stopped if that fails.
    StartedAgain,
    /// The start of a child with a new configuration. The child is held back if that fails.
    Configured,
    /// The new incarnation of a running child.
    Renewed,
    /// The child to be down.
    Down,
}

impl WaitFor {
    pub(super) fn is_down(self) -> bool {
        self == Self::Down
    }

    pub(super) fn is_up(self) -> bool {
        self != Self::Down
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Callers {
    /// Tickets are in the order of the calls.
    waiting: BTreeMap<(Key, Ticket), WaitFor>,
    /// The callers that seek a child.
    seeking: BTreeSet<(Key, Ticket)>,
    /// Children whose callers may have an answer by now.
    recheck: BTreeSet<Key>,
    /// Whether a child that others require may have gone down for good.
    recheck_gated: bool,
}

impl Callers {
    /// Keeps a caller until the child is Active, or does not come up any more.
    pub(super) fn seek(&mut self, key: Key, ticket: Ticket) {
        self.seeking.insert((key, ticket));
    }

    pub(super) fn stop_seeking(&mut self, key: Key, ticket: Ticket) {
        self.seeking.remove(&(key, ticket));
    }

    pub(super) fn is_sought(&self, key: Key) -> bool {
        self.seeking.range((key, Ticket::MIN)..=(key, Ticket::MAX)).next().is_some()
    }

    /// Removes the first caller that seeks the child.
    pub(super) fn take_seeker(&mut self, key: Key) -> Option<Ticket> {
        let found = self.seeking.range((key, Ticket::MIN)..=(key, Ticket::MAX)).next().copied()?;
        self.seeking.remove(&found);
        Some(found.1)
    }

    /// Removes the first caller that seeks any child.
    pub(super) fn take_any_seeker(&mut self) -> Option<Ticket> {
        self.seeking.pop_first().map(|(_, ticket)| ticket)
    }

    /// Notes that the child may not come up any more. `is_required`: nor the children that require it.
    pub(super) fn note_down(&mut self, key: Key, is_required: bool) {
        if self.is_sought(key) {
            self.recheck.insert(key);
        }
        self.recheck_gated |= is_required && !self.has_none();
    }

    /// Takes the children whose callers may have an answer since the last call, and whether those of gated
    /// children may have one.
    pub(super) fn take_recheck(&mut self) -> (BTreeSet<Key>, bool) {
        (std::mem::take(&mut self.recheck), std::mem::take(&mut self.recheck_gated))
    }

    /// Whether no caller waits or seeks.
    pub(super) fn has_none(&self) -> bool {
        self.waiting.is_empty() && self.seeking.is_empty()
    }

    /// The children that callers seek.
    pub(super) fn sought(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.seeking.iter().map(|&(key, _)| key).collect();
        keys.dedup();
        keys
    }

    pub(super) fn wait(&mut self, key: Key, ticket: Ticket, goal: WaitFor) {
        self.waiting.insert((key, ticket), goal);
    }

    /// The callers of the child, in the order of their calls.
    pub(super) fn of(&self, key: Key) -> impl Iterator<Item = (Ticket, WaitFor)> {
        let waiting = self.waiting.range((key, Ticket::MIN)..=(key, Ticket::MAX));
        waiting.map(|(&(_, ticket), &goal)| (ticket, goal))
    }

    /// Removes the child's first caller with a matching goal.
    pub(super) fn take(&mut self, key: Key, matches: fn(WaitFor) -> bool) -> Option<Ticket> {
        let (ticket, _) = self.of(key).find(|&(_, goal)| matches(goal))?;
        self.waiting.remove(&(key, ticket));
        Some(ticket)
    }

    /// Whether a caller waits for the child to be up.
    pub(super) fn waits_until_up(&self, key: Key) -> bool {
        self.of(key).any(|(_, goal)| goal.is_up())
    }

    /// The children that callers wait for until they are up.
    pub(super) fn awaited_up(&self) -> Vec<Key> {
        let waiting = self.waiting.iter().filter(|(_, goal)| goal.is_up());
        let mut keys: Vec<_> = waiting.map(|(&(key, _), _)| key).collect();
        keys.dedup();
        keys
    }

    /// The goal of a caller that has requested the child's start. If that start fails, the failure is
    /// the answer to this caller, and the supervisor does not act on it.
    pub(super) fn awaited_start(&self, key: Key) -> Option<WaitFor> {
        let mut goals = self.of(key).map(|(_, goal)| goal);
        let is_start = |goal: &WaitFor| !matches!(goal, WaitFor::Renewed | WaitFor::Down);
        goals.find(is_start)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.seeking.len()
    }
}

impl Machine {
    /// Finds the incarnation of the child that is Active. Returns the answer, unless it comes later.
    pub(super) fn find(&mut self, ticket: Ticket, key: Key, wait: bool) -> Option<ChildAnswer> {
        match self.whereabouts(key) {
            None if wait => {
                self.children_mut().callers.seek(key, ticket);
                None
            }
            None => Some(ChildAnswer::Restarting),
            answer => answer,
        }
    }

    /// The answer to a caller that seeks the child: its incarnation, if that is Active, or why it does not
    /// come up. `None` while it is on its way up.
    pub(super) fn whereabouts(&self, key: Key) -> Option<ChildAnswer> {
        let returns = |key| each!(self, kind => kind.will_be_started(key));
        let children = self.children();
        let Some(entry) = children.entries.get(key) else { return Some(ChildAnswer::NotFound) };
        let comes_up = match entry.state {
            ChildState::Active => return Some(ChildAnswer::Started(entry.incarnation)),
            ChildState::Gated(_) => match self.withheld(key) {
                Some(withheld) => return Some(ChildAnswer::Withheld(withheld)),
                None => !children.is_blocked(key, |provider| {
                    children.state(provider) == Some(ChildState::AwaitingGroup) || returns(provider)
                }),
            },
            ChildState::Down(_) => returns(key),
            ChildState::Stopping { .. } => each!(self, kind => kind.comes_back(key)),
            _ => true,
        };
        (!comes_up).then_some(ChildAnswer::InvalidState(entry.lifecycle))
    }

    /// Answers the callers that seek these children, or also those that seek any gated child, if the child
    /// does not come up.
    pub(super) fn answer_seekers(
        &mut self,
        mut keys: BTreeSet<Key>,
        and_gated: bool,
        cx: &mut StepCx<'_>,
    ) {
        if and_gated {
            let children = self.children();
            let is_gated = |key: &Key| matches!(children.state(*key), Some(ChildState::Gated(_)));
            keys.extend(children.callers.sought().into_iter().filter(is_gated));
        }
        for key in keys {
            let answer = match self.whereabouts(key) {
                None => continue,
                Some(ChildAnswer::InvalidState(Lifecycle::Deactivating | Lifecycle::Stopped)) => {
                    ChildAnswer::Stopped
                }
                Some(answer) => answer,
            };
            self.children_mut().answer_seekers(key, &answer, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::arena::Arena;

    #[test]
    fn callers_of_a_child_are_taken_once_each_in_the_order_of_their_calls() {
        let mut arena = Arena::default();
        let [a, b] = ["a", "b"].map(|name| arena.insert(name));
        let mut callers = Callers::default();
        assert!(callers.has_none());
        for (key, ticket, goal) in [
            (b, 1, WaitFor::Down),
            (a, 2, WaitFor::Renewed),
            (a, 3, WaitFor::Down),
            (a, 4, WaitFor::Started),
        ] {
            callers.wait(key, ticket, goal);
        }

        assert!(!callers.has_none());
        assert_eq!((callers.waits_until_up(a), callers.waits_until_up(b)), (true, false));
        assert_eq!(callers.awaited_start(a), Some(WaitFor::Started));
        let up = |goal| goal != WaitFor::Down;
        let taken: Vec<_> = std::iter::from_fn(|| callers.take(a, up)).collect();
        assert_eq!(taken, [2, 4]);
        assert_eq!((callers.take(b, |_| true), callers.take(a, |_| true)), (Some(1), Some(3)));
        assert!(callers.has_none());
        assert_eq!(callers.len(), 0);
    }

    #[test]
    fn a_caller_that_seeks_a_child_has_requested_no_start() {
        let mut arena = Arena::default();
        let [a, b] = ["a", "b"].map(|name| arena.insert(name));
        let mut callers = Callers::default();
        callers.note_down(a, true);
        assert_eq!(callers.take_recheck(), (BTreeSet::new(), false), "no caller seeks a child");

        for (key, ticket) in [(b, 1), (a, 2), (a, 3)] {
            callers.seek(key, ticket);
        }
        assert_eq!((callers.awaited_start(a), callers.waits_until_up(a)), (None, false));
        assert_eq!((callers.awaited_up(), callers.take(a, |_| true)), (Vec::new(), None));
        assert_eq!((callers.len(), callers.sought()), (3, vec![a, b]));

        callers.note_down(a, false);
        callers.note_down(b, true);
        assert_eq!(callers.take_recheck(), (BTreeSet::from([a, b]), true));
        let taken: Vec<_> = std::iter::from_fn(|| callers.take_seeker(a)).collect();
        assert_eq!((taken, callers.is_sought(a), callers.is_sought(b)), (vec![2, 3], false, true));
        assert_eq!((callers.take_any_seeker(), callers.take_any_seeker()), (Some(1), None));
        assert!(callers.has_none());
        assert_eq!(callers.len(), 0);
    }
}
