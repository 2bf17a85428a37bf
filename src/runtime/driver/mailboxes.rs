//! The mailboxes of the children: binding them, and closing those that will not be read.
//!
//! The task of a child borrows the child's mailbox. The driver binds the mailbox to the child, tells it
//! that the child is cancelled, and closes it when the child is down and the machine doesn't restart it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::{Driver, Step};
use crate::child::ChildSpec;
use crate::core::{IncarnationNumber, Key};
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::mailbox::{ChildBinding, ChildId, DefaultDrain, MailboxControl, MailboxOwner};
use crate::runtime::orphaned_mailboxes::close_orphaned;

/// The longest time that an incarnation has to run before it receives messages that were queued before
/// its start, in microseconds.
const MAX_DRAIN_MICROS: u16 = 50_000;

impl Driver {
    pub(super) fn bind_mailbox(
        &self,
        key: Key,
        spec: &ChildSpec,
        mailbox: &Arc<dyn MailboxControl>,
    ) {
        let drain = if spec.options.signals {
            DefaultDrain::AtReady
        } else {
            let rules = self.machine.rules_of(key);
            let first = rules.map_or(Duration::ZERO, |rules| rules.backoff.first_wait());
            let micros = u16::try_from(first.as_micros()).unwrap_or(u16::MAX);
            DefaultDrain::AfterMicros(micros.min(MAX_DRAIN_MICROS))
        };
        mailbox.bind(ChildBinding {
            owner: Arc::clone(&self.shared) as Arc<dyn MailboxOwner>,
            key,
            name: Arc::clone(spec.factory.name()),
            serial: self.children.entry(key).and_then(|entry| entry.serial),
            drain,
            start_on_message: spec.options.on_message,
        });
    }

    /// Returns the mailbox that is bound to the child.
    pub(super) fn mailbox(&self, key: Key) -> Option<&Arc<dyn MailboxControl>> {
        let child = ChildId::new(&self.shared, key);
        self.children.mailbox(key).filter(|mailbox| mailbox.belongs_to(child))
    }

    /// The child is started.
    pub(super) fn reopen_mailbox(&self, key: Key) {
        if let Some(mailbox) = self.mailbox(key) {
            mailbox.reopen();
        }
    }

    /// The child is cancelled.
    pub(super) fn close_mailbox(&self, key: Key) {
        let returns = || self.machine.returns(key) || self.may_return();
        if let Some(mailbox) = self.mailbox(key) {
            if self.machine.is_failing(key)
                && let Some(incarnation) = self.children.incarnation(key)
            {
                incarnation.mark_failed();
            }
            mailbox.begin_stop(!returns());
        } else if self.is_supervisor(key) && !returns() {
            // There may be mailboxes below it.
            if let Some(incarnation) = self.children.incarnation(key) {
                incarnation.mark_final();
            }
        }
    }

    /// An incarnation has failed, was killed, or has leaked. Reports the message that it had in hand.
    pub(super) fn lose_message(
        &self,
        key: Key,
        incarnation: IncarnationNumber,
        reason: &Arc<ExitReason>,
        now: Instant,
    ) {
        if !reason.is_clean()
            && let Some(mailbox) = self.mailbox(key)
        {
            Arc::clone(mailbox).lose(incarnation, reason, now);
        }
    }

    /// Returns `true` if this supervisor ends and may be restarted by the one above.
    fn may_return(&self) -> bool {
        let is_final = self.above.as_ref().is_none_or(|ctx| ctx.incarnation.is_final());
        !is_final && self.machine.is_ending()
    }

    /// Notes a child that may be down for good.
    pub(super) fn note_down(&self, key: Key, step: &mut Step) {
        if self.mailbox(key).is_some() || self.is_supervisor(key) {
            step.down.push(key);
        }
    }

    /// Closes the mailboxes of children that are down and not restarted.
    ///
    /// It must be called after an event was handled completely: the machine decides about a child only
    /// then.
    pub(super) fn settle_mailboxes(&mut self, down: &[Key], now: Instant) {
        // If the supervisor may be restarted, its mailboxes are kept until it has ended.
        if down.is_empty() || self.may_return() {
            return;
        }
        for &key in down {
            let returns = self.machine.returns(key);
            if !returns {
                self.close_down(key, now);
            } else if self.machine.awaits_message(key)
                && let Some(mailbox) = self.mailbox(key).map(Arc::clone)
            {
                self.backlog.push_letters(mailbox.mark_idle());
                self.backlog.publish(now);
            }
        }
    }

    /// Closes the mailbox of a child that is down for good, or the mailboxes below it.
    fn close_down(&mut self, key: Key, now: Instant) {
        let reason = self.close_reason(key);
        match self.mailbox(key).map(Arc::clone) {
            Some(mailbox) => self.backlog.push_letters(mailbox.close(reason)),
            // The machine may have forgotten by now that the child was a supervisor.
            None => {
                self.backlog.push_letters(self.shared.orphaned_mailboxes.close(key, reason));
            }
        }
        self.backlog.publish(now);
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
    pub(super) fn remove_mailbox(&mut self, key: Key, now: Instant) {
        self.close_down(key, now);
        if let Some(mailbox) = self.mailbox(key) {
            mailbox.unbind();
        }
    }

    /// The supervisor has ended. If it may be restarted, the mailboxes of its declared children are
    /// handed to the supervisor above. The next incarnation doesn't have the children that were added
    /// later, so their mailboxes are closed.
    pub(super) fn hand_over_mailboxes(&mut self) {
        let below = self.shared.orphaned_mailboxes.release();
        let lends = self.blueprint.lends;
        if !lends && below.is_empty() && self.children.mailboxes().next().is_none() {
            return;
        }
        let above = self.above.as_ref().filter(|ctx| !ctx.incarnation.is_final());
        let above = above.and_then(|ctx| Some((ctx.incarnation.key, self.shared.above.as_ref()?)));
        let declared = above.iter().flat_map(|_| self.blueprint.children.iter());
        let declared: HashSet<_> = declared.map(|child| Arc::as_ptr(&child.factory)).collect();
        let comes_back = |key| {
            let entry = self.children.entry(key);
            entry.is_some_and(|entry| declared.contains(&Arc::as_ptr(&entry.factory)))
        };
        let mut orphans = Vec::new();
        for (supervisor, mailboxes) in below {
            if comes_back(supervisor) {
                orphans.extend(mailboxes);
            } else {
                drop(close_orphaned(mailboxes, DeadLetterReason::UndeliveredAtStop));
            }
        }
        for (key, _) in self.children.mailboxes() {
            let Some(mailbox) = self.mailbox(key) else { continue };
            if comes_back(key) {
                orphans.push(Arc::clone(mailbox));
            } else {
                drop(Arc::clone(mailbox).close(self.close_reason(key)));
                mailbox.unbind();
            }
        }
        match above {
            Some((key, above)) => {
                let owner = Arc::clone(above) as Arc<dyn MailboxOwner>;
                above.orphaned_mailboxes.hold(key, orphans, &owner);
            }
            None => self.close_unbound(),
        }
    }

    /// Closes the mailboxes below that were never bound, since their supervisor or fallback was never
    /// started. Otherwise a sender would wait forever.
    fn close_unbound(&self) {
        let mut open: Vec<_> = self.blueprint.children.iter().collect();
        while let Some(spec) = open.pop() {
            if let Some(mailbox) = spec.factory.mailbox().filter(|mailbox| mailbox.is_unbound()) {
                drop(Arc::clone(mailbox).close(DeadLetterReason::UndeliveredAtStop));
            }
            open.extend(spec.factory.children().iter().filter(|child| child.lends()));
            open.extend(spec.fallback.as_deref());
        }
    }
}
