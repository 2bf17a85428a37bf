//! One incarnation of a child: what its task, its contexts and its supervisor share.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tracing::Span;

use super::busy::PollTimes;
use super::cell::{IncarnationCell, StopLevel};
use super::helpers::{HelperGuard, Helpers};
use super::mailbox::{ChildId, LoanHolder, MailboxControl, MailboxLoan, message_span};
use super::spec::ConfigSpec;
use crate::core::{ConditionEvent, IncarnationNumber, Key, MachineEvent};
use crate::exit::{ExitError, ExitReason};
use crate::path::{Path, SerialName};
use crate::policy::{RestartPolicy, RestartType, StartCause};
use crate::properties::Properties;
use crate::runtime::{SupervisorShared, watch};
use crate::sync::{AtomicU16, Ordering};

/// A signal from a child to its supervisor. Repeating one in the same incarnation has no effect.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Ready,
    Healthy,
    StopSelf,
    Acked,
}

// What has become true of an incarnation, as bits.

/// The child has signalled that it is ready. A child that is ready when it starts doesn't.
pub(crate) const READY: u16 = 1;
const HEALTHY: u16 = 1 << 1;
const STOP_SELF: u16 = 1 << 2;
const ACKED: u16 = 1 << 3;
/// The child is cancelled because it failed, or it has ended.
const FAILED: u16 = 1 << 4;
/// The child is cancelled for good, as far as its supervisor knows.
const FINAL: u16 = 1 << 5;
/// The child is aborted without a grace, and so is everything below it.
const BRUTAL: u16 = 1 << 10;
/// The child has a watchdog, so that its heartbeats are noted.
pub(super) const WATCHED: u16 = 1 << 6;
/// The child has started a helper.
const HELPED: u16 = 1 << 7;
/// The child's own task has ended.
const ENDED: u16 = 1 << 8;
/// The child's own task can be woken.
const REGISTERED: u16 = 1 << 9;
/// The child is a supervisor.
pub(super) const SUPERVISOR: u16 = 1 << 11;

/// The name of a child, its mailbox and its configuration.
#[derive(Clone)]
pub(crate) struct ChildIdentity {
    pub(crate) name: Arc<str>,
    pub(crate) mailbox: Option<Arc<dyn MailboxControl>>,
    pub(crate) config: Option<Arc<ConfigSpec>>,
}

/// See the [module](self).
pub(crate) struct Incarnation {
    pub(crate) parent: Arc<SupervisorShared>,
    identity: Arc<ChildIdentity>,
    pub(crate) key: Key,
    /// Distinguishes children of one name under a dynamic supervisor.
    serial: Option<NonZeroU64>,
    pub(crate) number: IncarnationNumber,
    pub(crate) start_cause: StartCause,
    flags: AtomicU16,
    pub(crate) cell: IncarnationCell,
    /// Boxed, because most incarnations are never measured. perf: budgets row "bytes"
    pub(super) poll_times: OnceLock<Box<PollTimes>>,
}

impl Incarnation {
    pub(crate) fn new(
        parent: Arc<SupervisorShared>,
        identity: Arc<ChildIdentity>,
        (key, serial): (Key, Option<NonZeroU64>),
        number: IncarnationNumber,
        start_cause: StartCause,
        watched: bool,
        properties: Option<Properties>,
    ) -> Self {
        Self {
            parent,
            identity,
            key,
            serial,
            number,
            start_cause,
            flags: AtomicU16::new(if watched { WATCHED } else { 0 }),
            cell: IncarnationCell::new(properties),
            poll_times: OnceLock::new(),
        }
    }

    /// Returns the name, without a serial number.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.identity.name
    }

    /// Returns what the spec says about the configuration.
    pub(crate) fn config(&self) -> Option<&Arc<ConfigSpec>> {
        self.identity.config.as_ref()
    }

    /// Returns the last name of the path.
    pub(crate) fn segment(&self) -> Arc<str> {
        match self.serial {
            None => Arc::clone(&self.identity.name),
            Some(serial) => {
                let name = &*self.identity.name;
                SerialName { name, serial }.to_string().into()
            }
        }
    }

    pub(crate) fn path(&self) -> Path {
        self.parent.path().child(&self.identity.name, self.serial)
    }

    /// Returns the loan with which this incarnation borrows the child's mailbox.
    pub(crate) fn loan(self: &Arc<Self>) -> MailboxLoan {
        let holder = Arc::clone(self) as Arc<dyn LoanHolder>;
        MailboxLoan { holder, child: self.child_id(), incarnation: self.number }
    }

    fn child_id(&self) -> ChildId {
        ChildId::new(&self.parent, self.key)
    }

    /// Lets the child's own task be woken. Called by each of its polls.
    pub(super) fn register_task(&self, waker: &Waker) {
        if !self.has(REGISTERED) {
            self.flags.fetch_or(REGISTERED, Ordering::Relaxed);
            self.cell.register(waker);
        }
    }

    /// Fails the child, unless it fails, stops or ends already.
    ///
    /// # Errors
    ///
    /// Returns the failure in these cases.
    pub(crate) fn fail(&self, failure: ExitError) -> Result<(), ExitError> {
        match self.helpers() {
            Some(helpers) if self.cell.level() == StopLevel::None => {
                helpers.fail(failure)?;
                self.cell.wake();
                Ok(())
            }
            _ => Err(failure),
        }
    }

    /// Reports that the child's own task has ended, while a helper that was aborted still runs.
    pub(super) fn report_remaining(&self, reason: Option<ExitReason>) {
        let (key, incarnation) = (self.key, self.number);
        self.parent.push_event(MachineEvent::Remaining { key, incarnation, reason });
    }

    /// Reports how the incarnation ended, or that it declined to start (`None`).
    pub(super) fn report_exit(&self, reason: Option<ExitReason>) {
        #[cfg(feature = "metrics")]
        self.count_rest();
        let (key, incarnation) = (self.key, self.number);
        self.parent.push_event(match reason {
            Some(reason) => MachineEvent::Exited { key, incarnation, reason },
            None => MachineEvent::Ignored { key, incarnation },
        });
    }

    /// Notes that the child's own task has ended, after which no helper is admitted. Returns the helpers, if
    /// there was ever one.
    pub(super) fn close_helpers(&self) -> Option<Arc<Helpers>> {
        let helped = self.flags.fetch_or(ENDED, Ordering::AcqRel) & HELPED != 0;
        helped.then(|| self.cell.helpers())
    }

    /// Whether the child's own task has ended. Its helpers may still run.
    pub(crate) fn has_ended(&self) -> bool {
        self.flags.load(Ordering::Acquire) & ENDED != 0
    }

    /// Admits a helper, which delays the exit until its guard is dropped. `None` if the child has ended.
    pub(crate) fn admit_helper(&self) -> Option<HelperGuard> {
        let helpers = self.cell.helpers();
        if self.flags.fetch_or(HELPED, Ordering::AcqRel) & ENDED != 0 {
            return None;
        }
        helpers.admit()
    }

    /// Returns the child's own supervisor, unless it has ended.
    pub(crate) fn own_supervisor(&self) -> Option<Arc<SupervisorShared>> {
        self.helpers()?.own()
    }

    /// Returns the helpers, if the child has ever started one.
    pub(super) fn helpers(&self) -> Option<Arc<Helpers>> {
        let helped = self.flags.load(Ordering::Acquire) & HELPED != 0;
        helped.then(|| self.cell.helpers())
    }

    /// Cancels the contexts that outlive the child's task.
    pub(crate) fn cancel_contexts(&self) {
        if self.cell.level() == StopLevel::None {
            // The child wasn't cancelled before it ended, so it has left work in its mailbox undone.
            self.mark_failed();
        }
        self.cell.raise(StopLevel::Cancel);
    }

    /// Reports that the child has set its own restart policy, or has cleared it (`None`).
    pub(crate) fn report_policy(&self, policy: Option<Arc<RestartPolicy>>) {
        let (key, incarnation) = (self.key, self.number);
        self.parent.push_event(MachineEvent::Policy { key, incarnation, policy });
        watch::release_woken(&self.parent);
    }

    /// Reports whether the last health check has passed.
    pub(crate) fn report_checked(&self, passed: bool) {
        let (key, incarnation) = (self.key, self.number);
        let event = ConditionEvent::Checked { key, incarnation, passed };
        self.parent.push_event(MachineEvent::Condition(event));
    }

    /// Reports a changed result of the child's health check.
    pub(crate) fn report_health(&self, problem: Option<Arc<str>>) {
        let (key, incarnation) = (self.key, self.number);
        let event = ConditionEvent::Health { key, incarnation, problem };
        self.parent.push_event(MachineEvent::Condition(event));
    }

    /// Sends a signal to the supervisor. A repetition is dropped.
    ///
    /// A child that repeats a signal for each message it handles must not fill the supervisor's
    /// inbox.
    pub(crate) fn notify(&self, signal: Signal) {
        let (key, incarnation) = (self.key, self.number);
        let (flag, event) = match signal {
            Signal::Ready => (READY, MachineEvent::Ready { key, incarnation }),
            Signal::Healthy => (HEALTHY, MachineEvent::Healthy { key, incarnation }),
            Signal::StopSelf => (STOP_SELF, MachineEvent::StopSelf { key, incarnation }),
            Signal::Acked => (ACKED, MachineEvent::Acked { key, incarnation }),
        };
        if self.flags.fetch_or(flag, Ordering::AcqRel) & flag != 0 {
            return;
        }
        if let Signal::Ready = signal
            && let Some(mailbox) = &self.identity.mailbox
        {
            mailbox.mark_ready(self.child_id(), self.number);
        }
        self.parent.push_event(event);
        watch::release_woken(&self.parent);
    }

    /// Whether this has become true of the incarnation.
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Marks the incarnation as cancelled because it failed.
    pub(crate) fn mark_failed(&self) {
        self.flags.fetch_or(FAILED, Ordering::AcqRel);
    }

    /// Marks the child as a supervisor.
    pub(super) fn mark_supervisor(&self) {
        self.flags.fetch_or(SUPERVISOR, Ordering::Relaxed);
    }

    /// Marks a supervisor as aborted without a grace, as its spec wants it: that no child below had one is no failure.
    pub(crate) fn mark_brutal(&self) {
        self.flags.fetch_or(BRUTAL, Ordering::AcqRel);
    }

    pub(crate) fn is_brutal(&self) -> bool {
        self.flags.load(Ordering::Acquire) & BRUTAL != 0
    }

    /// Marks the incarnation as the last one.
    pub(crate) fn mark_final(&self) {
        self.flags.fetch_or(FINAL, Ordering::AcqRel);
    }

    pub(crate) fn is_final(&self) -> bool {
        self.flags.load(Ordering::Acquire) & FINAL != 0
    }

    pub(crate) fn status(&self) -> Option<Arc<str>> {
        self.cell.status()
    }

    pub(crate) fn alarming(&self) -> Option<Arc<str>> {
        self.cell.alarming()
    }
}

impl LoanHolder for Incarnation {
    fn message_span(&self, message_type: &'static str) -> Span {
        message_span(|| self.path(), self.number, message_type)
    }

    fn is_cancelled_without_failure(&self) -> bool {
        // The flag is set before the level is raised.
        self.cell.level() > StopLevel::None && self.flags.load(Ordering::Acquire) & FAILED == 0
    }

    fn on_ack(&self) {
        self.notify(Signal::Acked);
    }

    fn on_final_message(&self) {
        let policy = RestartPolicy::new().restart(RestartType::Temporary);
        self.report_policy(Some(Arc::new(policy)));
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incarnation")
            .field("path", &self.path())
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Incarnations that no supervisor has started.
#[cfg(test)]
pub(crate) mod orphan {

    use super::*;

    pub(crate) fn incarnation(number: IncarnationNumber) -> Arc<Incarnation> {
        incarnation_of(&SupervisorShared::idle(), number)
    }

    pub(crate) fn incarnation_of(
        parent: &Arc<SupervisorShared>,
        number: IncarnationNumber,
    ) -> Arc<Incarnation> {
        let key = Key::of_number(0);
        let identity =
            Arc::new(ChildIdentity { name: "child".into(), mailbox: None, config: None });
        let cause = StartCause::Initial;
        let parent = Arc::clone(parent);
        Arc::new(Incarnation::new(parent, identity, (key, None), number, cause, false, None))
    }
}
