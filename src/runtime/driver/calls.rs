//! Calls that wait for an answer.

use std::collections::BTreeMap;

use crate::core::{Key, Ticket};
use crate::runtime::request::{ChildName, Responder, Started};

/// The calls that wait for an answer of the machine.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: BTreeMap<Ticket, Call>,
    next: Ticket,
}

/// A call about a child.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) key: Key,
    pub(super) child: ChildName,
    pub(super) name: &'static str,
    pub(super) answer: Responder<Started>,
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.insert(ticket, call);
        ticket
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Call> {
        self.waiting.remove(&ticket)
    }
}
