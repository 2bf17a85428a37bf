//! The mailboxes of the children: binding them, and closing those that will not be read.
//!
//! The task of a child borrows the child's mailbox. The driver binds the mailbox to the child, tells it
//! that the child is cancelled, and closes it when the child is down and the machine doesn't restart it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::{Driver, Step};
use crate::child::ChildSpec;
use crate::core::{Key, Machine};
use crate::dead_letter::DeadLetterReason;
use crate::mailbox::{ChildBinding, ChildId, DefaultDrain, MailboxControl, MailboxOwner};
use crate::runtime::orphaned_mailboxes::close_orphaned;

/// The longest time that an incarnation has to run before it receives messages that were queued before
/// its start, in microseconds.
const MAX_DRAIN_MICROS: u16 = 50_000;

impl<M: Machine> Driver<M> {
    pub(super) fn bind_mailbox(
        &self,
        key: Key,
        spec: &ChildSpec,
        mailbox: &Arc<dyn MailboxControl>,
    ) {
        let drain = if spec.options.signals {
            DefaultDrain::AtReady
        } else {
            let first = self.hub.blueprint.rules.backoff(&spec.options).first_wait();
            let micros = u16::try_from(first.as_micros()).unwrap_or(u16::MAX);
            DefaultDrain::AfterMicros(micros.min(MAX_DRAIN_MICROS))
        };
        mailbox.bind(ChildBinding {
            owner: Arc::clone(&self.hub) as Arc<dyn MailboxOwner>,
            key,
            name: Arc::clone(&spec.seed.name),
            serial: self.tasks.entry(key).and_then(|entry| entry.serial),
            drain,
            start_on_message: spec.options.on_message,
        });
    }

    /// Returns the mailbox that is bound to the child.
    pub(super) fn mailbox(&self, key: Key) -> Option<Arc<dyn MailboxControl>> {
        let child = ChildId::new(&self.hub, key);
        self.tasks.mailbox(key).filter(|mailbox| mailbox.belongs_to(child))
    }

    /// The child is started.
    pub(super) fn reopen_mailbox(&self, key: Key) {
        // perf: budgets row "start": most supervisors have no mailboxes.
        if self.heeds_edges
            && let Some(mailbox) = self.mailbox(key)
        {
            mailbox.reopen();
        }
    }

    /// The child is cancelled.
    pub(super) fn close_mailbox(&self, key: Key) {
        let returns = || self.machine.returns(key) || self.may_return();
        if let Some(mailbox) = self.mailbox(key) {
            if self.machine.is_failing(key) {
                self.tasks.blame(key);
            }
            mailbox.begin_stop(!returns());
        } else if self.is_supervisor(key) && !returns() {
            // There may be mailboxes below it.
            self.tasks.dismiss(key);
        }
    }

    /// Returns `true` if this supervisor ends and may be restarted by the one above.
    fn may_return(&self) -> bool {
        let dismissed = self.above.as_ref().is_none_or(|ctx| ctx.run.is_dismissed());
        !dismissed && self.machine.is_ending()
    }

    /// Notes a child that may be down for good.
    pub(super) fn note_down(&self, key: Key, step: &mut Step<'_>) {
        if self.mailbox(key).is_some() || self.is_supervisor(key) {
            step.down.push(key);
        }
    }

    /// Closes the mailboxes of children that are down and not restarted.
    ///
    /// It must be called after an event was handled completely: the machine decides about a child only
    /// then.
    pub(super) fn settle_mailboxes(&self, down: &[Key], now: Instant) {
        // If the supervisor may be restarted, its mailboxes are kept until it has ended.
        if down.is_empty() || self.may_return() {
            return;
        }
        for &key in down {
            let returns = self.machine.returns(key);
            match self.mailbox(key) {
                Some(mailbox) if !returns => mailbox.close(self.close_reason(key), now),
                Some(mailbox) if self.machine.awaits_message(key) => mailbox.mark_idle(now),
                None if !returns => {
                    self.hub.orphaned_mailboxes.close(key, self.close_reason(key), now);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Returns the reason for the dead letters of a mailbox that is closed.
    fn close_reason(&self, key: Key) -> DeadLetterReason {
        if self.given_up.as_ref().is_some_and(|it| it.0 == key) {
            DeadLetterReason::GaveUp
        } else {
            DeadLetterReason::UndeliveredAtStop
        }
    }

    /// The child is removed or replaced.
    pub(super) fn remove_mailbox(&self, key: Key, now: Instant) {
        if let Some(mailbox) = self.mailbox(key) {
            Arc::clone(&mailbox).close(self.close_reason(key), now);
            mailbox.unbind();
        } else {
            // The machine may have forgotten by now that the child was a supervisor.
            self.hub.orphaned_mailboxes.close(key, self.close_reason(key), now);
        }
    }

    /// The supervisor has ended. If it may be restarted, the mailboxes of its declared children are
    /// handed to the supervisor above. The next incarnation doesn't have the children that were added
    /// later, so their mailboxes are closed.
    pub(super) fn hand_over_mailboxes(&mut self, now: Instant) {
        let below = self.hub.orphaned_mailboxes.release();
        let lends = self.hub.blueprint.lends;
        if !lends && below.is_empty() && self.tasks.mailboxes().next().is_none() {
            return;
        }
        let above = self.above.as_ref().filter(|ctx| !ctx.run.is_dismissed());
        let above = above.and_then(|ctx| Some((ctx.run.key, self.hub.above.as_ref()?)));
        let declared = above.iter().flat_map(|_| &self.hub.blueprint.children);
        let declared: HashSet<_> = declared.map(|child| Arc::as_ptr(&child.seed)).collect();
        let comes_back = |key| {
            let entry = self.tasks.entry(key);
            entry.is_some_and(|entry| declared.contains(&Arc::as_ptr(&entry.seed)))
        };
        let mut orphans = Vec::new();
        for (supervisor, mailboxes) in below {
            if comes_back(supervisor) {
                orphans.extend(mailboxes);
            } else {
                close_orphaned(mailboxes, DeadLetterReason::UndeliveredAtStop, now);
            }
        }
        for (key, _) in self.tasks.mailboxes() {
            let Some(mailbox) = self.mailbox(key) else { continue };
            if comes_back(key) {
                orphans.push(mailbox);
            } else {
                Arc::clone(&mailbox).close(self.close_reason(key), now);
                mailbox.unbind();
            }
        }
        match above {
            Some((key, above)) => {
                let owner = Arc::clone(above) as Arc<dyn MailboxOwner>;
                above.orphaned_mailboxes.hold(key, orphans, &owner, now);
            }
            None => self.close_unbound(now),
        }
    }

    /// Closes the mailboxes below that were never bound, since their supervisor or fallback was never
    /// started. Otherwise a sender would wait forever.
    fn close_unbound(&self, now: Instant) {
        let mut open: Vec<_> = self.hub.blueprint.children.iter().collect();
        while let Some(spec) = open.pop() {
            if let Some(mailbox) = spec.seed.mailbox().filter(|mailbox| mailbox.is_unbound()) {
                mailbox.close(DeadLetterReason::UndeliveredAtStop, now);
            }
            open.extend(spec.seed.children().iter().filter(|child| child.lends()));
            open.extend(spec.fallback.as_deref());
        }
    }
}
