//! What a supervisor has beside its machine and its children's tasks: its attachments.
//!
//! The driver knows when something happens to a child, and an attachment knows what follows from that for mailboxes, leases,
//! health checks and so on. An attachment never decides whether a child is started or stopped. It can only give events to the
//! machine, like everybody else.
//!
//! | file | what it attaches | a supervisor has it |
//! | --- | --- | --- |
//! | `mailboxes` | mailboxes of children, and those below child supervisors | with the first such child |
//! | `leases` | keepers of leases | with the first child that needs a lease |
//! | `health` | health checks | with the first child that has one |
//! | `health` | answers to the machine's question for a heartbeat | always, without a state |
//! | `callback` | calls of the failure callback | with a callback |
//! | `metrics` | counters and histograms | while a recorder is installed |
//! | `recent` | calls and removed children, for the status | always |
//! | `reports` | events, log lines, and letters about children | always |
//!
//! # Invariants
//!
//! 1. The attachments act in the order of the table, in which the macro `each` lists them.
//! 2. An attachment sees an effect before the driver applies it: a mailbox is reopened before its child starts and closed before
//!    its child is cancelled, and the record of a removed child can still be read.
//! 3. `settled` comes once at the end of each step. Only then is it known whether a child is down for good.
//! 4. An event that an attachment gives to the machine is handled in the same iteration, after the step.
//! 5. What belongs to every child is in the child's record. An attachment has tables only for children that need it.
//! 6. Without a listener, a recorder and a capability that its tree uses, a step costs one call here for each effect.

mod callback;
mod health;
#[cfg(feature = "lease")]
mod leases;
#[cfg(feature = "mailbox")]
mod mailboxes;
#[cfg(feature = "metrics")]
mod metrics;
mod recent;
mod reports;
mod task_set;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use self::callback::Callback;
use self::health::HealthChecks;
pub(super) use self::recent::{Gone, Recent};
use super::blueprint::Blueprint;
use super::children::ChildTable;
use super::shared::SupervisorShared;
use crate::child::{ChildId, ChildSpec, Context, MailboxControl};
use crate::core::{
    Decision, Effect, Ending, IncarnationNumber, Key, Machine, MachineEvent, Report,
};
use crate::exit::ExitReason;
use crate::path::Path;
use crate::policy::AbortKind;
use crate::status::ChildInfo;

/// What an attachment sees of its supervisor, in one step of the machine.
pub(super) struct StepView<'a> {
    pub(super) now: Instant,
    pub(super) machine: &'a Machine,
    pub(super) children: &'a ChildTable,
    pub(super) blueprint: &'a Blueprint,
    pub(super) shared: &'a Arc<SupervisorShared>,
    /// This supervisor as a child of the one above, or `None` for a root.
    pub(super) above: Option<&'a Context>,
    pub(super) leaked: &'a FxHashSet<(Key, IncarnationNumber)>,
    pub(super) step: &'a Step,
}

/// One step of the machine.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Whether any lifecycle log line is enabled.
    pub(super) logged: bool,
    /// Whether anything subscribes to the tree's events.
    pub(super) published: bool,
    /// The exit that the step is about, for the reports and the decision that follow from it.
    pub(super) exit: Option<ExitInfo>,
}

/// How an incarnation ended.
#[derive(Debug)]
pub(super) struct ExitInfo {
    pub(super) key: Key,
    pub(super) incarnation: IncarnationNumber,
    pub(super) reason: Arc<ExitReason>,
    /// How long it had been `Active`.
    pub(super) lifetime: Option<Duration>,
}

impl<'a> StepView<'a> {
    /// Returns the mailbox that is bound to the child.
    pub(super) fn mailbox(&self, key: Key) -> Option<&'a Arc<dyn MailboxControl>> {
        let child = ChildId::new(self.shared, key);
        self.children.mailbox(key).filter(|mailbox| mailbox.belongs_to(child))
    }

    fn path(&self, key: Key) -> Path {
        self.children.path(key)
    }

    /// Returns how this incarnation ended, if the step is about that.
    fn exit_of(&self, key: Key, incarnation: IncarnationNumber) -> Option<&ExitInfo> {
        self.step.exit.as_ref().filter(|it| (it.key, it.incarnation) == (key, incarnation))
    }

    /// Returns what it means that a child was aborted in a stop, if the edge is about that.
    pub(super) fn killed(&self, report: &Report) -> Option<AbortKind> {
        match report.ending {
            // A leak was logged when it was found.
            Some(Ending::Killed(kind))
                if !self.leaked.contains(&(report.key, report.incarnation)) =>
            {
                Some(kind)
            }
            _ => None,
        }
    }
}

/// What happens to a child, for an attachment.
trait Attachment {
    /// A child was declared.
    fn declared(&mut self, _key: Key, _spec: &ChildSpec, _view: &StepView<'_>) {}

    /// A child gets new code, which its next incarnation has.
    fn recoded(&mut self, _key: Key, _spec: &ChildSpec) {}

    /// The driver is about to apply this effect.
    fn before(&mut self, _effect: &Effect, _view: &StepView<'_>) {}

    /// All effects of a step were applied.
    fn settled(&mut self, _view: &StepView<'_>) {}

    /// An incarnation is gone, and no effect tells of it: its failure was decided on before, or the supervisor is gone.
    fn gone(
        &mut self,
        _key: Key,
        _incarnation: IncarnationNumber,
        _reason: &Arc<ExitReason>,
        _view: &StepView<'_>,
    ) {
    }

    /// Whether an iteration has left work over.
    fn has_work(&self) -> bool {
        false
    }

    /// Continues the work that iterations before have left over, as far as one iteration may.
    fn work_off(&mut self, _now: Instant) {}

    /// Does what is left over now, since no iteration follows.
    fn drop_work(&mut self) {}

    /// The supervisor has ended. Waits for what is under way.
    fn finish(&mut self, _shared: &SupervisorShared) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The supervisor is gone, and so are its children.
    fn closed(&mut self, _view: &StepView<'_>) {}

    /// Adds what is known of a child to its status.
    fn show(&self, _key: Key, _view: &StepView<'_>, _info: &mut ChildInfo) {}
}

/// What the attachments of a supervisor share with those of the supervisors below.
#[derive(Debug, Default)]
pub(super) struct SharedAttachments {
    #[cfg(feature = "mailbox")]
    orphaned_mailboxes: mailboxes::OrphanedMailboxes,
}

/// The attachments of one supervisor.
#[derive(Default)]
pub(super) struct Attachments {
    #[cfg(feature = "mailbox")]
    mailboxes: Option<Box<mailboxes::Mailboxes>>,
    #[cfg(feature = "lease")]
    leases: Option<Box<leases::Leases>>,
    health: Option<Box<HealthChecks>>,
    callback: Option<Box<Callback>>,
    #[cfg(feature = "metrics")]
    metrics: Option<Box<metrics::Metrics>>,
    pub(super) recent: Recent,
    /// What attachments have given to the machine in this step.
    events: Vec<MachineEvent>,
}

/// Calls a method of each attachment that the supervisor has, in their order.
macro_rules! each {
    ($attachments:ident.$as:ident, $it:ident => $call:expr) => {{
        #[cfg(feature = "mailbox")]
        if let Some($it) = $attachments.mailboxes.$as() {
            $call
        }
        #[cfg(feature = "lease")]
        if let Some($it) = $attachments.leases.$as() {
            $call
        }
        if let Some($it) = $attachments.health.$as() {
            $call
        }
        if let Some($it) = $attachments.callback.$as() {
            $call
        }
        #[cfg(feature = "metrics")]
        if let Some($it) = $attachments.metrics.$as() {
            $call
        }
    }};
}

impl Attachments {
    pub(super) fn new(shared: &SupervisorShared) -> Self {
        Self { callback: shared.callback.is_some().then(Box::default), ..Self::default() }
    }

    /// Prepares what a new child has beside its tasks.
    pub(super) fn declared(&mut self, key: Key, spec: &ChildSpec, view: &StepView<'_>) {
        self.make_for(spec);
        each!(self.as_deref_mut, it => it.declared(key, spec, view));
    }

    /// Prepares what a child with new code has beside its tasks.
    pub(super) fn recoded(&mut self, key: Key, spec: &ChildSpec) {
        self.make_for(spec);
        each!(self.as_deref_mut, it => it.recoded(key, spec));
    }

    fn make_for(&mut self, spec: &ChildSpec) {
        // There may be mailboxes below a supervisor.
        #[cfg(feature = "mailbox")]
        if spec.lends() || spec.options.facts.kind.is_supervisor() {
            self.mailboxes.get_or_insert_default();
        }
        #[cfg(feature = "lease")]
        if spec.lease.is_some() {
            self.leases.get_or_insert_default();
        }
        let mut specs = std::iter::successors(Some(spec), |spec| spec.fallback.as_deref());
        if specs.any(|spec| spec.health.is_some()) {
            self.health.get_or_insert_default();
        }
    }

    /// A step begins: a recorder may have been installed since the last one. Returns whether any attachment follows this step,
    /// and not only what is [notable](Self::is_notable) in it.
    pub(super) fn begin(&mut self, step: &Step, _shared: &Arc<SupervisorShared>) -> bool {
        #[cfg(feature = "metrics")]
        if self.metrics.is_none() && crate::metrics::is_installed() {
            self.metrics = Some(Box::new(metrics::Metrics::new(_shared)));
        }
        let mut follows = step.logged || step.published;
        each!(self.as_deref, _it => follows = true);
        follows
    }

    /// Whether [`before`](Self::before) acts on this effect even if no attachment follows the step.
    pub(super) fn is_notable(effect: &Effect) -> bool {
        match effect {
            Effect::Condition(_) | Effect::Removed { .. } => true,
            Effect::Decided { .. } => effect.gives_up(),
            _ => false,
        }
    }

    /// See [`Attachment::before`].
    pub(super) fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        each!(self.as_deref_mut, it => it.before(effect, view));
        if let Effect::Condition(effect) = effect {
            self.events.extend(health::answer_heartbeat(effect, view));
        }
        if let Effect::Removed { key, incarnation } = effect {
            self.recent.removed(*key, *incarnation, view);
        }
        if view.step.logged || view.step.published || effect.gives_up() {
            if let Effect::Decided { key, decision: Decision::Restart { .. }, .. } = effect {
                self.recent.restarted = Some(*key);
            }
            reports::before(effect, &self.recent, view);
        }
    }

    /// See [`Attachment::settled`].
    pub(super) fn settled(&mut self, view: &StepView<'_>) {
        each!(self.as_deref_mut, it => it.settled(view));
    }

    /// Returns what the machine is to handle after the step.
    pub(super) fn take_events(&mut self) -> Vec<MachineEvent> {
        std::mem::take(&mut self.events)
    }

    /// See [`Attachment::gone`].
    pub(super) fn gone(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        reason: &Arc<ExitReason>,
        view: &StepView<'_>,
    ) {
        each!(self.as_deref_mut, it => it.gone(key, incarnation, reason, view));
    }

    /// See [`Attachment::closed`].
    pub(super) fn closed(&mut self, view: &StepView<'_>) {
        // New code may have mailboxes of children that were never declared.
        #[cfg(feature = "mailbox")]
        if view.blueprint.lends {
            self.mailboxes.get_or_insert_default();
        }
        each!(self.as_deref_mut, it => it.closed(view));
    }

    /// See [`Attachment::show`].
    pub(super) fn show(&self, key: Key, view: &StepView<'_>, info: &mut ChildInfo) {
        each!(self.as_deref, it => it.show(key, view, info));
        self.recent.show(key, view, info);
    }

    /// See [`Attachment::has_work`].
    pub(super) fn has_work(&self) -> bool {
        let mut has_work = false;
        each!(self.as_deref, it => has_work |= it.has_work());
        has_work
    }

    /// See [`Attachment::work_off`].
    pub(super) fn work_off(&mut self, now: Instant) {
        each!(self.as_deref_mut, it => it.work_off(now));
    }

    /// See [`Attachment::drop_work`].
    pub(super) fn drop_work(&mut self) {
        each!(self.as_deref_mut, it => it.drop_work());
    }

    /// Takes in what the keeper of a child's lease reports. Returns what follows for the machine.
    #[cfg(feature = "lease")]
    pub(super) fn lease_changed(
        &mut self,
        key: Key,
        keeper: u64,
        change: crate::lease::LeaseChange,
        view: &StepView<'_>,
    ) -> Option<MachineEvent> {
        self.leases.as_deref_mut()?.changed(key, keeper, change, view)
    }

    /// See [`Attachment::finish`].
    pub(super) async fn finish(&mut self, shared: &SupervisorShared) {
        each!(self.as_deref_mut, it => it.finish(shared).await);
    }
}
