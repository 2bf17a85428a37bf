//! The mailboxes of the children: binding them, and closing those that will not be read.
//!
//! The task of a child borrows the child's mailbox, which is in the child's factory. This binds the mailbox to the child, tells it
//! that the child is cancelled, and closes it when the child is down and the machine doesn't restart it. If the supervisor itself
//! may be restarted, its mailboxes are kept until it has ended, and handed to the supervisor above then.
//!
//! # Invariants
//!
//! 1. A mailbox accepts messages for an incarnation from before its start until before its cancellation.
//! 2. A mailbox is closed once its child is down for good, which is known at the end of a step only.
//! 3. Letters are published in the order in which mailboxes were closed, a bounded number in each iteration. The supervisor ends
//!    after the last one.
//! 4. A supervisor holds the mailboxes of a child supervisor that may be restarted. They are bound again, closed, or handed to the
//!    supervisor above, so that a supervisor that has ended holds none.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Attachment, StepView};
use crate::child::{
    ChildBinding, ChildFactory, ChildId, ChildSpec, DefaultDrain, LeftMessages, MailboxControl,
    MailboxLoad, MailboxOwner,
};
use crate::core::{Decision, Effect, IncarnationNumber, Key};
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::status::{ChildInfo, MailboxInfo};
use crate::sync::Mutex;

/// The longest time that an incarnation has to run before it receives messages that were queued before
/// its start, in microseconds.
const MAX_DRAIN_MICROS: u16 = 50_000;

/// How many dead letters of closed mailboxes one iteration publishes.
const LETTERS: usize = 256;

/// See the [module](self).
pub(super) struct Mailboxes {
    /// The messages of closed mailboxes. Dropping them publishes them.
    letters: VecDeque<Box<dyn LeftMessages>>,
    /// How many letters this iteration may still publish.
    letters_left: usize,
    /// The children that this step has left down, and maybe for good.
    down: Vec<Key>,
    /// The child that was given up last.
    given_up: Option<Key>,
}

impl Default for Mailboxes {
    fn default() -> Self {
        Self { letters: VecDeque::new(), letters_left: LETTERS, down: Vec::new(), given_up: None }
    }
}

impl StepView<'_> {
    /// Whether this supervisor ends and may be restarted by the one above.
    fn may_return(&self) -> bool {
        let is_final = self.above.as_ref().is_none_or(|ctx| ctx.incarnation.is_final());
        !is_final && self.machine.is_ending()
    }
}

impl Attachment for Mailboxes {
    fn declared(&mut self, key: Key, spec: &ChildSpec, view: &StepView<'_>) {
        bind(key, spec, view);
    }

    fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        match effect {
            Effect::Start { key, held, .. } => {
                // A child that was given up may have been brought back.
                self.given_up.take_if(|given_up| given_up == key);
                if let Some(mailbox) = view.mailbox(*key) {
                    if let Some(until) = held {
                        mailbox.delay_delivery(*until);
                    }
                    mailbox.reopen();
                }
            }
            Effect::Cancel { key } => begin_stop(*key, view),
            Effect::Close { key, .. } => {
                if let Some(mailbox) = view.mailbox(*key) {
                    mailbox.force_close();
                }
            }
            // A child that failed while its task runs may still finish with its message.
            Effect::Ended { key, incarnation, reason, .. }
                if view.children.incarnation(*key).is_none() =>
            {
                self.gone(*key, *incarnation, reason, view);
            }
            Effect::Leaked { key, incarnation } => {
                self.gone(*key, *incarnation, &Arc::new(ExitReason::Killed), view);
                self.note_down(*key, view);
            }
            Effect::Report(report)
                if matches!(report.to, Lifecycle::Stopped | Lifecycle::Errored) =>
            {
                self.note_down(report.key, view);
            }
            Effect::Decided { key, decision, .. } => {
                if decision.gives_up() {
                    self.given_up = Some(*key);
                }
                self.note_down(*key, view);
                if *decision == Decision::FallBack {
                    self.replace(*key, view);
                }
            }
            Effect::StaysDown { key } => self.note_down(*key, view),
            Effect::Removed { key, .. } => self.remove(*key, view),
            _ => {}
        }
    }

    fn settled(&mut self, view: &StepView<'_>) {
        let down = std::mem::take(&mut self.down);
        // If the supervisor may be restarted, its mailboxes are kept until it has ended.
        if down.is_empty() || view.may_return() {
            return;
        }
        for key in down {
            if !view.machine.returns(key) {
                self.close_down(key, view);
            } else if view.machine.awaits_message(key)
                && let Some(mailbox) = view.mailbox(key)
            {
                self.letters.extend(Arc::clone(mailbox).mark_idle());
                self.publish(view.now);
            }
        }
    }

    fn gone(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        reason: &Arc<ExitReason>,
        view: &StepView<'_>,
    ) {
        if !reason.is_clean()
            && let Some(mailbox) = view.mailbox(key)
        {
            Arc::clone(mailbox).lose(incarnation, reason, view.now);
        }
    }

    fn has_work(&self) -> bool {
        !self.letters.is_empty()
    }

    fn work_off(&mut self, now: Instant) {
        self.letters_left = LETTERS;
        self.publish(now);
    }

    // These letters are older than those of mailboxes that are closed later. Dropping them publishes them.
    fn drop_work(&mut self) {
        self.letters.clear();
    }

    fn closed(&mut self, view: &StepView<'_>) {
        self.hand_over(view);
    }

    fn show(&self, key: Key, view: &StepView<'_>, info: &mut ChildInfo) {
        info.mailbox = view.mailbox(key).map(|mailbox| {
            let MailboxLoad { len, capacity, full_since } = mailbox.load(view.now);
            let full_since = full_since.map(|at| view.shared.tree.wall_clock(at));
            MailboxInfo { len, capacity, full_since }
        });
    }
}

fn bind(key: Key, spec: &ChildSpec, view: &StepView<'_>) {
    let Some(mailbox) = spec.factory.mailbox() else { return };
    let drain = if spec.options.facts.signals {
        DefaultDrain::AtReady
    } else {
        let rules = view.machine.rules_of(key);
        let first = rules.map_or(Duration::ZERO, |rules| rules.backoff.first_wait());
        let micros = u16::try_from(first.as_micros()).unwrap_or(u16::MAX);
        DefaultDrain::AfterMicros(micros.min(MAX_DRAIN_MICROS))
    };
    mailbox.bind(ChildBinding {
        owner: Arc::clone(view.shared) as Arc<dyn MailboxOwner>,
        key,
        name: Arc::clone(spec.factory.name()),
        serial: view.children.entry(key).and_then(|entry| entry.serial),
        drain,
        start_on_message: spec.options.on_message,
    });
    let written = view.machine.rules_of(key).and_then(|rules| rules.mailbox_capacity);
    mailbox.set_capacity(ChildId::new(view.shared, key), written);
}

/// The child is about to be cancelled.
fn begin_stop(key: Key, view: &StepView<'_>) {
    let returns = || view.machine.returns(key) || view.may_return();
    let incarnation = view.children.incarnation(key);
    if let Some(mailbox) = view.mailbox(key) {
        if let Some(incarnation) = incarnation.filter(|_| view.machine.is_failing(key)) {
            incarnation.mark_failed();
        }
        mailbox.begin_stop(!returns());
    } else if let Some(incarnation) = incarnation
        && view.machine.is_supervisor(key)
        && !returns()
    {
        // There may be mailboxes below it.
        incarnation.mark_final();
    }
}

impl Mailboxes {
    fn publish(&mut self, now: Instant) {
        while self.letters_left > 0
            && let Some(messages) = self.letters.front_mut()
        {
            self.letters_left -= messages.publish(self.letters_left, now);
            if messages.is_empty() {
                self.letters.pop_front();
            }
        }
    }

    /// Notes a child that may be down for good.
    fn note_down(&mut self, key: Key, view: &StepView<'_>) {
        if view.mailbox(key).is_some() || view.machine.is_supervisor(key) {
            self.down.push(key);
        }
    }

    /// Closes the mailbox of a child that is down for good, or the mailboxes below it.
    fn close_down(&mut self, key: Key, view: &StepView<'_>) {
        let reason = self.close_reason(key);
        match view.mailbox(key) {
            Some(mailbox) => self.letters.extend(Arc::clone(mailbox).close(reason)),
            // The machine may have forgotten by now that the child was a supervisor.
            None => self.letters.extend(view.shared.attached.orphaned_mailboxes.close(key, reason)),
        }
        self.publish(view.now);
    }

    /// Returns the reason for the dead letters of a mailbox that is closed.
    fn close_reason(&self, key: Key) -> DeadLetterReason {
        if self.given_up == Some(key) {
            DeadLetterReason::GaveUp
        } else {
            DeadLetterReason::UndeliveredAtStop
        }
    }

    /// The child is about to be removed or replaced.
    fn remove(&mut self, key: Key, view: &StepView<'_>) {
        self.close_down(key, view);
        if let Some(mailbox) = view.mailbox(key) {
            mailbox.unbind();
        }
    }

    /// The child's fallback is about to replace it.
    fn replace(&mut self, key: Key, view: &StepView<'_>) {
        self.remove(key, view);
        if let Some(fallback) = view.children.entry(key).and_then(|entry| entry.fallback.as_ref()) {
            bind(key, fallback, view);
        }
    }

    /// The supervisor has ended. If it may be restarted, the mailboxes of its declared children are
    /// handed to the supervisor above. The next incarnation doesn't have the children that were added
    /// later, so their mailboxes are closed.
    fn hand_over(&self, view: &StepView<'_>) {
        let below = view.shared.attached.orphaned_mailboxes.release();
        let lends = view.blueprint.lends;
        if !lends && below.is_empty() && view.children.mailboxes().next().is_none() {
            return;
        }
        let above = view.above.filter(|ctx| !ctx.incarnation.is_final());
        let above = above.and_then(|ctx| Some((ctx.incarnation.key, view.shared.above.as_ref()?)));
        let declared = above.iter().flat_map(|_| view.blueprint.children.iter());
        // A wrapped factory keeps its identity.
        let identity = |factory: &ChildFactory| Arc::as_ptr(&factory.identity);
        let declared: HashSet<_> = declared.map(|child| identity(&child.factory)).collect();
        let comes_back = |key| {
            let entry = view.children.entry(key);
            entry.is_some_and(|entry| declared.contains(&identity(&entry.factory)))
        };
        let mut orphans = Vec::new();
        for (supervisor, mailboxes) in below {
            if comes_back(supervisor) {
                orphans.extend(mailboxes);
            } else {
                drop(close_orphaned(mailboxes, DeadLetterReason::UndeliveredAtStop));
            }
        }
        for (key, _) in view.children.mailboxes() {
            let Some(mailbox) = view.mailbox(key) else { continue };
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
                above.attached.orphaned_mailboxes.hold(key, orphans, &owner);
            }
            None => close_unbound(view),
        }
    }
}

/// Closes the mailboxes below that were never bound, since their supervisor or fallback was never
/// started. Otherwise a sender would wait forever.
fn close_unbound(view: &StepView<'_>) {
    let mut open: Vec<_> = view.blueprint.children.iter().collect();
    while let Some(spec) = open.pop() {
        if let Some(mailbox) = spec.factory.mailbox().filter(|mailbox| mailbox.is_unbound()) {
            drop(Arc::clone(mailbox).close(DeadLetterReason::UndeliveredAtStop));
        }
        open.extend(spec.factory.children().iter().filter(|child| child.lends()));
        open.extend(spec.fallback.as_deref());
    }
}

/// The held mailboxes, by the child supervisor that they are below.
type BySupervisor = BTreeMap<Key, Vec<Arc<dyn MailboxControl>>>;

/// Mailboxes whose supervisor, a child of this one, has ended and may be restarted.
#[derive(Debug)]
pub(super) struct OrphanedMailboxes {
    /// `None` once the supervisor has ended.
    held: Mutex<Option<BySupervisor>>,
}

impl Default for OrphanedMailboxes {
    fn default() -> Self {
        Self { held: Mutex::new(Some(BTreeMap::new())) }
    }
}

impl OrphanedMailboxes {
    /// Holds the mailboxes below a child supervisor that has ended, in the name of `owner`.
    ///
    /// Those that were held before and are still orphaned stay: the child supervisor may have ended
    /// before it had started their children.
    pub(super) fn hold(
        &self,
        supervisor: Key,
        mut mailboxes: Vec<Arc<dyn MailboxControl>>,
        owner: &Arc<dyn MailboxOwner>,
    ) {
        if mailboxes.is_empty() {
            return;
        }
        let before = self.take(supervisor);
        let known: HashSet<_> = mailboxes.iter().map(address).collect();
        mailboxes.extend(
            before.into_iter().filter(|it| it.is_orphaned() && !known.contains(&address(it))),
        );
        for mailbox in &mailboxes {
            mailbox.orphan(Arc::clone(owner));
        }
        let refused = match &mut *self.held.lock() {
            Some(held) => {
                held.insert(supervisor, mailboxes);
                return;
            }
            None => mailboxes,
        };
        drop(close_orphaned(refused, DeadLetterReason::UndeliveredAtStop));
    }

    /// Closes the mailboxes below a child supervisor that will not be restarted. Returns their messages,
    /// which become dead letters.
    pub(super) fn close(
        &self,
        supervisor: Key,
        reason: DeadLetterReason,
    ) -> Vec<Box<dyn LeftMessages>> {
        close_orphaned(self.take(supervisor), reason)
    }

    /// Returns all mailboxes that are still orphaned, by child supervisor, and holds none from now on.
    pub(super) fn release(&self) -> BySupervisor {
        let mut released = mem::take(&mut *self.held.lock()).unwrap_or_default();
        for mailboxes in released.values_mut() {
            mailboxes.retain(|mailbox| mailbox.is_orphaned());
        }
        released
    }

    fn take(&self, supervisor: Key) -> Vec<Arc<dyn MailboxControl>> {
        let mut held = self.held.lock();
        held.as_mut().and_then(|held| held.remove(&supervisor)).unwrap_or_default()
    }
}

fn address(mailbox: &Arc<dyn MailboxControl>) -> usize {
    Arc::as_ptr(mailbox).addr()
}

/// Closes the mailboxes that were not bound again meanwhile. Returns their messages, which become dead
/// letters.
pub(super) fn close_orphaned(
    mailboxes: Vec<Arc<dyn MailboxControl>>,
    reason: DeadLetterReason,
) -> Vec<Box<dyn LeftMessages>> {
    let mut left = Vec::new();
    for mailbox in mailboxes {
        if mailbox.is_orphaned() {
            left.extend(Arc::clone(&mailbox).close(reason));
            mailbox.unbind();
        }
    }
    left
}
