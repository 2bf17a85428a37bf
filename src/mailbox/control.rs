//! A mailbox as its supervisor sees it, whatever the type of its messages.

use std::any::{Any, type_name};
use std::sync::Arc;
use std::time::Instant;

use super::options::{Delay, Diversion};
use super::shared::MailboxShared;
use crate::child::{ChildBinding, ChildId, LeftMessages, MailboxControl, MailboxOwner};
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::path::Path;

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
