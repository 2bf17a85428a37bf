//! Calls that wait for an answer.

use std::collections::BTreeMap;

use crate::core::{ChildRequest, Key, Ticket};
use crate::runtime::request::{ChildName, Responder, Started};

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
        let is_gone = |_: &Ticket, call: &mut Call| call.seeks() && call.answer.is_closed();
        let gone: Vec<_> = self.waiting.extract_if(.., is_gone).collect();
        self.sweep_at = 2 * self.waiting.len();
        gone.into_iter().map(|(ticket, call)| (call.key, ticket)).collect()
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Call> {
        self.waiting.remove(&ticket)
    }
}
