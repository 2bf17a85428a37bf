//! Callers that seek a child: its incarnation that is Active, or why there is none.
//!
//! They request nothing, so they change neither how a start is answered nor how a failure is handled.

use std::collections::BTreeSet;

use super::{ChildAnswer, ChildState, Key, Machine, StepCx, Ticket, each};
use crate::lifecycle::Lifecycle;

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
