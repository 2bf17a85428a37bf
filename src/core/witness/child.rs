//! What is known of one child.

use std::sync::Arc;
use std::time::Instant;

use super::super::IncarnationNumber;
use super::grants::OwnGrants;
use crate::exit::ExitReason;
use crate::failure::Resolution;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, ChildOptions, Exceptions, Limits, OnExhausted, OnExit, RestartPolicy, Rules,
    StartCause,
};

/// What never changes about a child.
#[derive(Debug)]
pub(in super::super) struct Nature {
    pub(in super::super) name: Arc<str>,
    pub(in super::super) options: Arc<ChildOptions>,
    /// The siblings it requires, by name.
    pub(in super::super) requires: Vec<Arc<str>>,
}

/// What is known of a child.
#[derive(Clone, Debug)]
pub(in super::super) struct Child {
    pub(in super::super) nature: Arc<Nature>,
    pub(in super::super) lifecycle: Lifecycle,
    pub(in super::super) since: Instant,
    pub(in super::super) incarnation: IncarnationNumber,
    pub(in super::super) live: bool,
    pub(in super::super) cancelled: bool,
    pub(in super::super) aborted: bool,
    pub(in super::super) forgotten: bool,
    /// Where it comes in the order.
    pub(super) place: u64,
    /// Why it was started last.
    pub(super) cause: Option<StartCause>,
    /// Whether it was ready when its incarnation ended, or asked for the end itself.
    pub(super) was_active: bool,
    /// It has asked to be stopped.
    pub(super) itself: bool,
    /// Its last incarnation has leaked.
    pub(super) leaked: bool,
    /// It was said what becomes of it, since it was started last.
    pub(super) decided: bool,
    /// Its last end was one that brings it back.
    pub(super) returns: bool,
    /// Whoever called it back was told that it failed to start.
    pub(super) told_failed: bool,
    /// It must go before anybody from this place on is started.
    pub(super) condemned: Option<u64>,
    /// The restarts that its own limits count.
    pub(super) own: OwnGrants,
    /// It is to be started as the fallback that it is now, for the first time.
    pub(super) replaced: bool,
    /// Failures since it was last healthy.
    pub(super) streak: u32,
    /// Waits that were drawn since then, and not asked for.
    pub(super) drawn: u32,
    /// Not restarted before this instant.
    pub(super) due: Option<Instant>,
    /// Whether somebody was asked what becomes of it.
    pub(in super::super) question: Question,
    /// It was asked about, since it was started last.
    pub(super) asked_once: bool,
    /// When that was.
    pub(super) asked_at: Instant,
    /// What was answered, until that is carried out.
    pub(super) answer: Option<Resolution>,
    /// A message waits for it, and it was not started since.
    pub(in super::super) mail: bool,
    /// It was Stopped, and not by its own end.
    pub(super) put_down: bool,
    /// It has ended, and its trigger left it.
    pub(super) left_alone: bool,
    /// The machine said that it comes back, and has told nothing else since.
    pub(super) expected: bool,
    /// Until when its messages are held, from its last restart on or from the next.
    pub(super) held: Option<Instant>,
    /// What it says itself of its restart.
    pub(super) policy: Option<RestartPolicy>,
}

/// Whether an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Question {
    None,
    Open,
    /// And a group operation is on its way to the child, so that no answer counts.
    Overtaken,
}

impl Child {
    /// One that was just added.
    pub(super) fn new(nature: Arc<Nature>, place: u64, now: Instant) -> Self {
        Self {
            nature,
            lifecycle: Lifecycle::Discovered,
            since: now,
            incarnation: 0,
            live: false,
            cancelled: false,
            aborted: false,
            forgotten: false,
            place,
            cause: None,
            was_active: false,
            itself: false,
            leaked: false,
            decided: false,
            returns: false,
            told_failed: false,
            condemned: None,
            own: OwnGrants::default(),
            replaced: false,
            streak: 0,
            drawn: 0,
            due: None,
            question: Question::None,
            asked_once: false,
            asked_at: now,
            answer: None,
            mail: false,
            put_down: false,
            left_alone: false,
            expected: false,
            held: None,
            policy: None,
        }
    }

    pub(super) fn backoff<'a>(&'a self, rules: &'a Rules) -> &'a Backoff {
        let own = self.policy.as_ref().and_then(|policy| policy.backoff.as_ref());
        own.unwrap_or_else(|| rules.backoff(&self.nature.options))
    }

    pub(super) fn limits(&self, rules: &Rules) -> Limits {
        let spec = rules.limits(&self.nature.options).unwrap_or_default();
        self.policy.as_ref().map_or(spec, |policy| policy.limits.get().or(spec))
    }

    pub(super) fn on_exhausted(&self, rules: &Rules) -> OnExhausted {
        let own = self.policy.as_ref().and_then(|policy| policy.on_exhausted);
        own.unwrap_or_else(|| rules.on_exhausted(&self.nature.options))
    }

    pub(super) fn on_exit(&self, rules: &Rules, reason: &ExitReason) -> OnExit {
        match self.policy.as_ref().and_then(|policy| policy.restart.as_ref()) {
            Some(own) => own.after(&Exceptions::default(), reason, self.was_active),
            None => rules.on_exit(&self.nature.options, reason, self.was_active),
        }
    }
}
