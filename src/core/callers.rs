//! Who waits for what becomes of a child.
//!
//! Kept apart from the children: a child is waited for when somebody starts, stops or restarts it by
//! hand, and the rest of its life not at all. Knows tickets, and not what they are answered with.

use std::collections::{HashMap, VecDeque};

use super::{Key, Ticket};

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Want {
    /// The first start of a child that was just added; it is forgotten if that fails.
    Started,
    /// The start of a stopped child; it stays stopped if that fails.
    StartedAgain,
    /// The new incarnation of a running child.
    Renewed,
    /// That the child is down.
    Down,
}

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Callers {
    /// For each child those who wait for it, the first to come first.
    waiting: HashMap<Key, VecDeque<(Ticket, Want)>>,
}

impl Callers {
    /// Whether nobody waits for anything: the rule.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wait(&mut self, key: Key, ticket: Ticket, want: Want) {
        self.waiting.entry(key).or_default().push_back((ticket, want));
    }

    /// Who waits for the child, the first to come first, and for what.
    pub(super) fn of(&self, key: Key) -> impl Iterator<Item = (Ticket, Want)> {
        self.waiting.get(&key).into_iter().flatten().copied()
    }

    /// Takes the first who waits for the child and wants what `wants` says.
    pub(super) fn take(&mut self, key: Key, wants: fn(Want) -> bool) -> Option<Ticket> {
        let waiting = self.waiting.get_mut(&key)?;
        let at = waiting.iter().position(|&(_, want)| wants(want))?;
        let (ticket, _) = waiting.remove(at)?;
        if waiting.is_empty() {
            self.waiting.remove(&key);
        }
        Some(ticket)
    }

    /// Whether somebody waits for the child to be up.
    pub(super) fn want_up(&self, key: Key) -> bool {
        self.of(key).any(|(_, want)| want != Want::Down)
    }

    /// Whether a caller waits for a start that nobody but him is to hear the failure of.
    pub(super) fn awaited_start(&self, key: Key) -> Option<Want> {
        let mut wants = self.of(key).map(|(_, want)| want);
        wants.find(|want| matches!(want, Want::Started | Want::StartedAgain))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::Arena;
    use super::*;

    #[test]
    fn each_is_taken_once_in_the_order_of_coming_and_for_his_child_only() {
        let mut arena = Arena::default();
        let [a, b] = ["a", "b"].map(|name| arena.insert(name));
        let mut callers = Callers::default();
        assert!(callers.is_empty());
        for (key, ticket, want) in
            [(b, 1, Want::Down), (a, 2, Want::Renewed), (a, 3, Want::Down), (a, 4, Want::Started)]
        {
            callers.wait(key, ticket, want);
        }

        assert!(!callers.is_empty());
        assert_eq!((callers.want_up(a), callers.want_up(b)), (true, false));
        assert_eq!(callers.awaited_start(a), Some(Want::Started));
        let up = |want| want != Want::Down;
        let taken: Vec<_> = std::iter::from_fn(|| callers.take(a, up)).collect();
        assert_eq!(taken, [2, 4]);
        assert_eq!((callers.take(b, |_| true), callers.take(a, |_| true)), (Some(1), Some(3)));
        assert!(callers.is_empty());
        assert_eq!(callers.len(), 0);
    }
}
