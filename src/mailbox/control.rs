//! A mailbox as its supervisor sees it, whatever the type of its messages.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::binding::{ChildBinding, ChildId, MailboxOwner};
use super::losses::LeftMessages;
use super::options::{Delay, Diversion};
use super::shared::MailboxShared;
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::path::Path;

/// See the [module](self).
pub(crate) trait MailboxControl: Send + Sync {
    /// Returns the mailbox itself, whose type has that of the messages.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Returns the type of the messages.
    fn message_type(&self) -> &'static str;

    /// Binds the mailbox to a child. It stays bound to the child that it has, if any.
    fn bind(&self, child: ChildBinding);

    /// Ends the binding of a child that was removed.
    fn unbind(&self);

    /// Hands the mailbox to `owner`, since the supervisor of its child has ended.
    fn orphan(&self, owner: Arc<dyn MailboxOwner>);

    /// Returns `true` if the supervisor of its child has ended and has not bound it again.
    fn is_orphaned(&self) -> bool;

    /// Returns `true` if it was never bound.
    fn is_unbound(&self) -> bool;

    /// Returns the path of the child that it is bound to.
    fn bound_to(&self) -> Option<Path>;

    /// Returns `true` if it is bound to this child.
    ///
    /// A mailbox can be given to two children by mistake; the supervisor of the second leaves it alone.
    fn belongs_to(&self, child: ChildId) -> bool;

    /// The child's incarnation is ready.
    fn mark_ready(&self, child: ChildId, incarnation: u32);

    /// Delivers nothing to the next incarnation before `until`.
    fn delay_delivery(&self, until: Instant);

    /// Returns `true` if a failure of the child delays its messages instead of its restart.
    fn delays_delivery(&self) -> bool;

    /// Returns `true` if it is set not to queue messages while its child is down.
    fn diverts(&self) -> bool;

    /// The child was started: the mailbox accepts messages for the new incarnation.
    fn reopen(&self);

    /// The current incarnation was cancelled; `for_good` if the child won't be restarted.
    fn begin_stop(&self, for_good: bool);

    /// The time for an ordered stop is over: the mailbox accepts no more messages, whatever its policy. The
    /// current incarnation, which was cancelled, receives the queued ones.
    fn force_close(&self);

    /// The incarnation has failed, was killed, or has leaked. If it had a message in hand, a dead letter
    /// reports the loss.
    fn lose(self: Arc<Self>, incarnation: u32, error: &Arc<ExitReason>, now: Instant);

    /// Closes the mailbox. Returns its messages, which become dead letters.
    fn close(self: Arc<Self>, reason: DeadLetterReason) -> Option<Box<dyn LeftMessages>>;

    /// The child is down until a message is sent. Returns the messages that become dead letters.
    fn mark_idle(self: Arc<Self>) -> Option<Box<dyn LeftMessages>>;

    /// Returns the number of messages, and the capacity.
    fn load(&self) -> (usize, usize);
}

impl<M: Send + 'static> MailboxControl for MailboxShared<M> {
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn message_type(&self) -> &'static str {
        type_name::<M>()
    }

    fn bind(&self, child: ChildBinding) {
        self.step(|state, fx| state.bind(child, fx));
    }

    fn unbind(&self) {
        self.step(|state, fx| state.unbind(fx));
    }

    fn orphan(&self, owner: Arc<dyn MailboxOwner>) {
        self.step(|state, fx| state.orphan(owner, fx));
    }

    fn is_orphaned(&self) -> bool {
        self.state().binding.is_orphaned()
    }

    fn is_unbound(&self) -> bool {
        self.state().binding.is_unbound()
    }

    fn bound_to(&self) -> Option<Path> {
        let state = self.state();
        state.binding.is_child().then(|| state.binding.path()).flatten()
    }

    fn belongs_to(&self, child: ChildId) -> bool {
        self.state().binding.belongs_to(child)
    }

    fn mark_ready(&self, child: ChildId, incarnation: u32) {
        self.step(|state, fx| state.mark_ready(child, incarnation, fx));
    }

    fn delay_delivery(&self, until: Instant) {
        self.state().delay_delivery(until);
    }

    fn delays_delivery(&self) -> bool {
        self.state().options().delay == Delay::Delivery
    }

    fn diverts(&self) -> bool {
        !matches!(self.state().options().while_down, Diversion::Stash)
    }

    fn reopen(&self) {
        self.step(|state, fx| state.reopen(fx));
    }

    fn begin_stop(&self, for_good: bool) {
        self.step(|state, fx| state.begin_stop(for_good, fx));
    }

    fn force_close(&self) {
        self.step(|state, fx| state.force_close(fx));
    }

    fn lose(self: Arc<Self>, incarnation: u32, error: &Arc<ExitReason>, now: Instant) {
        MailboxShared::lose(&self, incarnation, error, now);
    }

    fn close(self: Arc<Self>, reason: DeadLetterReason) -> Option<Box<dyn LeftMessages>> {
        let messages = self.step(|state, fx| state.close(reason, fx));
        self.left(messages, reason)
    }

    fn mark_idle(self: Arc<Self>) -> Option<Box<dyn LeftMessages>> {
        let messages = self.step(|state, fx| state.mark_idle(fx));
        self.left(messages, DeadLetterReason::HandlerError)
    }

    fn load(&self) -> (usize, usize) {
        MailboxShared::load(self)
    }
}

impl fmt::Debug for dyn MailboxControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.load();
        f.debug_struct("Mailbox").field("len", &len).field("capacity", &capacity).finish()
    }
}
