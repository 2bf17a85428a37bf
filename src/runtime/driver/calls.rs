//! Calls that wait for an answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::{ChildRequest, Key, Ticket};
use crate::runtime::request::{CallNote, ChildName, Responder, Started};

/// The calls that wait for an answer of the machine.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: BTreeMap<Ticket, Call>,
    next: Ticket,
    /// With how many calls those are dropped whose callers are gone.
    sweep_at: usize,
}

/// With fewer calls than these, none is dropped because its caller is gone.
const KEPT: usize = 64;

/// A call about a child.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) key: Key,
    pub(super) child: ChildName,
    pub(super) name: &'static str,
    pub(super) note: Option<Arc<CallNote>>,
    /// `None` for a change of the configuration.
    pub(super) request: Option<ChildRequest>,
    pub(super) answer: Responder<Started>,
}

impl Call {
    /// Whether the caller seeks the child, and requests nothing else.
    pub(super) fn seeks(&self) -> bool {
        matches!(self.request, Some(ChildRequest::Find { .. }))
    }
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.insert(ticket, call);
        ticket
    }

    /// Drops the calls that seek a child for a caller that is gone, once there are many calls. Returns them.
    ///
    /// Such a call may wait for as long as its child is down, and callers may give up and call again. Each
    /// sweep doubles the number of calls at which the next one is due.
    pub(super) fn sweep(&mut self) -> Vec<(Key, Ticket)> {
        if self.waiting.len() < self.sweep_at.max(KEPT) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        self.waiting.retain(|&ticket, call| {
            let is_gone = call.seeks() && call.answer.is_closed();
            gone.extend(is_gone.then_some((call.key, ticket)));
            !is_gone
        });
        self.sweep_at = 2 * self.waiting.len();
        gone
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Call> {
        self.waiting.remove(&ticket)
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn of_many_calls_those_that_seek_a_child_without_a_caller_are_dropped() {
        let key = Key::of_number(0);
        let (mut calls, mut callers) = (Calls::default(), Vec::new());
        let call = |calls: &mut Calls, request| {
            let child = ChildName { name: "a".into(), serial: None };
            let (answer, caller) = oneshot::channel();
            let call =
                Call { key, child, name: "child", note: None, request: Some(request), answer };
            (calls.insert(call), caller)
        };
        for _ in 0..KEPT / 2 {
            callers.push(call(&mut calls, ChildRequest::Find { wait: true }));
            drop(call(&mut calls, ChildRequest::Terminate));
        }
        assert_eq!(calls.sweep(), [], "all callers still wait, or have requested something");
        let gone: Vec<_> = callers.drain(..KEPT / 4).map(|(ticket, _)| (key, ticket)).collect();
        assert_eq!(calls.sweep(), [], "the next sweep is due with twice as many calls");
        while calls.waiting.len() < 2 * KEPT {
            callers.push(call(&mut calls, ChildRequest::Find { wait: true }));
        }
        assert_eq!(calls.sweep(), gone);
        assert_eq!(calls.waiting.len(), 2 * KEPT - gone.len());
    }
}
