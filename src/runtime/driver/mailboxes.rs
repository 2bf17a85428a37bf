//! The mailboxes of children: where they are, and when nobody will come for what is in them.
//!
//! A mailbox is lent to an incarnation by the child's own task. Here it gets its place in the tree,
//! hears that its child is to stop, and is sent away when the child is down and the machine says
//! that it doesn't come back by itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::state::{Driver, Step};
use crate::child::ChildSpec;
use crate::core::Key;
use crate::dead_letter::{DeadLetterReason, Owner};
use crate::mailbox::{At, Grace, Slot, spot};
use crate::runtime::wards::send_away;

/// How long an incarnation has to live at most before it gets what came before its start, in
/// microseconds.
const GRACE: u16 = 50_000;

impl Driver {
    pub(super) fn give_mailbox(&self, key: Key, spec: &ChildSpec, mailbox: &Arc<dyn Slot>) {
        let grace = if spec.options.signals {
            Grace::UntilReady
        } else {
            let first = self.shared.blueprint.rules.backoff(&spec.options).first_wait();
            let micros = u16::try_from(first.as_micros()).unwrap_or(u16::MAX);
            Grace::Micros(micros.min(GRACE))
        };
        mailbox.bind(At {
            owner: Arc::clone(&self.shared) as Arc<dyn Owner>,
            key,
            name: Arc::clone(&spec.factory.name),
            serial: self.children.entry(key).and_then(|entry| entry.serial),
            grace,
            starts_on_message: spec.options.on_message,
        });
    }

    /// The child's mailbox, if this is its place.
    pub(super) fn mailbox(&self, key: Key) -> Option<Arc<dyn Slot>> {
        self.children.mailbox(key).filter(|mailbox| mailbox.is_at(spot(&self.shared, key)))
    }

    /// The child is started.
    pub(super) fn reopen_mailbox(&self, key: Key) {
        if let Some(mailbox) = self.mailbox(key) {
            mailbox.reopen();
        }
    }

    /// The child is asked to stop.
    pub(super) fn close_mailbox(&self, key: Key) {
        let returns = || self.machine.returns(key) || self.may_return();
        if let Some(mailbox) = self.mailbox(key) {
            if self.machine.is_failing(key)
                && let Some(incarnation) = self.children.incarnation(key)
            {
                incarnation.mark_failed();
            }
            mailbox.stopping(!returns());
        } else if self.is_supervisor(key) && !returns() {
            // It has mailboxes below it.
            if let Some(incarnation) = self.children.incarnation(key) {
                incarnation.mark_final();
            }
        }
    }

    /// Whether this supervisor ends, and may be started again by the one above.
    fn may_return(&self) -> bool {
        let dismissed = self.above.as_ref().is_none_or(|ctx| ctx.incarnation.is_final());
        !dismissed && self.machine.is_ending()
    }

    /// Notes a child that may be down for good.
    pub(super) fn note_down(&self, key: Key, step: &mut Step) {
        if self.mailbox(key).is_some() || self.is_supervisor(key) {
            step.down.push(key);
        }
    }

    /// Sends those away whose child does not come back. What becomes of it is decided only when an
    /// event has been taken in as a whole.
    pub(super) fn look_after_mailboxes(&self, down: &[Key]) {
        // If it may return, it is decided when it has ended.
        if down.is_empty() || self.may_return() {
            return;
        }
        for &key in down {
            let returns = self.machine.returns(key);
            match self.mailbox(key) {
                Some(mailbox) if !returns => mailbox.away(self.reason(key)),
                Some(mailbox) if self.machine.awaits_message(key) => mailbox.rest(),
                None if !returns => self.shared.dismiss(key, self.reason(key)),
                Some(_) | None => {}
            }
        }
    }

    /// Why nobody reads what is left.
    fn reason(&self, key: Key) -> DeadLetterReason {
        if self.given_up.as_ref().is_some_and(|it| it.0 == key) {
            DeadLetterReason::GaveUp
        } else {
            DeadLetterReason::UndeliveredAtStop
        }
    }

    /// The child is gone, or another from now on.
    pub(super) fn take_mailbox(&self, key: Key) {
        if let Some(mailbox) = self.mailbox(key) {
            Arc::clone(&mailbox).away(self.reason(key));
            mailbox.unbind();
        } else {
            // The machine may not know any more that it was a supervisor.
            self.shared.dismiss(key, self.reason(key));
        }
    }

    /// The supervisor has ended. If it may come back, what its declared children have not read waits
    /// for that; those that were added are not there any more then.
    pub(super) fn leave_mailboxes(&mut self) {
        let below = self.shared.release();
        let lends = self.shared.blueprint.lends;
        if !lends && below.is_empty() && self.children.mailboxes().next().is_none() {
            return;
        }
        let above = self.above.as_ref().filter(|ctx| !ctx.incarnation.is_final());
        let above = above.and_then(|ctx| Some((ctx.incarnation.key, self.shared.above.as_ref()?)));
        // Nobody is looked for at the end of a tree.
        let declared = above.iter().flat_map(|_| &self.shared.blueprint.children);
        let declared: HashSet<_> = declared.map(|child| Arc::as_ptr(&child.factory)).collect();
        let comes_back = |key| {
            let entry = self.children.entry(key);
            entry.is_some_and(|entry| declared.contains(&Arc::as_ptr(&entry.factory)))
        };
        let mut wards = Vec::new();
        for (supervisor, mailboxes) in below {
            if comes_back(supervisor) {
                wards.extend(mailboxes);
            } else {
                send_away(mailboxes, DeadLetterReason::UndeliveredAtStop);
            }
        }
        for (key, _) in self.children.mailboxes() {
            let Some(mailbox) = self.mailbox(key) else { continue };
            if comes_back(key) {
                wards.push(mailbox);
            } else {
                Arc::clone(&mailbox).away(self.reason(key));
                mailbox.unbind();
            }
        }
        match above {
            Some((key, above)) => above.adopt(key, wards),
            None => self.close_unbound(),
        }
    }

    /// Closes the mailboxes below that were never given a place, because the turn of their supervisor, or
    /// of a fallback, has not come: otherwise who writes to them would never hear that nobody reads.
    fn close_unbound(&self) {
        let mut open: Vec<_> = self.shared.blueprint.children.iter().collect();
        while let Some(spec) = open.pop() {
            if let Some(mailbox) = spec.factory.mailbox().filter(|mailbox| mailbox.is_nowhere()) {
                mailbox.away(DeadLetterReason::UndeliveredAtStop);
            }
            open.extend(spec.factory.children().iter().filter(|child| child.lends()));
            open.extend(spec.fallback.as_deref());
        }
    }
}
