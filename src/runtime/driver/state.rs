//! The state of a supervisor's loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backlog::Backlog;
use super::calls::Calls;
use super::health_tasks::HealthTasks;
use super::lease_tasks::LeaseTasks;
use super::recent::Recent;
use super::task_set::TaskSet;
use super::timer::DeadlineTimer;
use super::wait_report::WaitReport;
use crate::child::{ChildSpec, Context, StopLevel};
use crate::core::{Effect, IncarnationNumber, Key, Machine, RequirementId, UserCalls};
use crate::exit::ExitReason;
use crate::metrics::ChildMetrics;
use crate::path::Path;
use crate::runtime::blueprint::Blueprint;
use crate::runtime::children::ChildTable;
use crate::runtime::inbox::Batch;
use crate::runtime::outcome::{Cause, End};
use crate::runtime::request::{Recode, Request};
use crate::runtime::shared::SupervisorShared;

/// The loop of one supervisor; see the [module](super).
pub(in crate::runtime) struct Driver {
    pub(super) machine: Machine,
    pub(super) user_code: UserCalls,
    /// That of `shared`, with the rules that the machine has.
    pub(super) blueprint: Arc<Blueprint>,
    pub(super) shared: Arc<SupervisorShared>,
    pub(super) children: ChildTable,
    pub(super) metrics: ChildMetrics,
    /// This supervisor as a child of the one above, or `None` for a root.
    pub(super) above: Option<Context>,
    /// The stop level that was handled last.
    pub(super) seen_level: StopLevel,
    pub(super) batch: Batch<Request>,
    pub(super) effects: Vec<Effect>,
    pub(super) timer: DeadlineTimer,
    pub(super) aborts: Aborts,
    pub(super) backlog: Backlog,
    pub(super) calls: Calls,
    /// What siblings require by name. A new child of that name provides it again.
    pub(super) requirements: BTreeMap<Arc<str>, RequirementId>,
    /// What has happened lately, for the status.
    pub(super) recent: Recent,
    /// New code that waits for the end of a group operation.
    pub(super) recodes: Vec<Recode>,
    /// What replaces a child that fails too often.
    pub(super) fallbacks: BTreeMap<Key, Arc<ChildSpec>>,
    pub(super) leaked: BTreeSet<(Key, IncarnationNumber)>,
    /// How long each failed child that is still to be decided on had been `Active`.
    pub(super) lifetimes: BTreeMap<Key, (IncarnationNumber, Duration)>,
    /// The child that was given up last. It may be forgotten before the supervisor ends.
    pub(super) given_up: Option<(Key, Path)>,
    /// The child that has ended the first start, and those that failed after it.
    pub(super) start_failures: Vec<Cause>,
    /// The calls of the failure callback under way.
    pub(super) callback_tasks: TaskSet,
    pub(super) health: HealthTasks,
    pub(super) leases: LeaseTasks,
    pub(super) waits: WaitReport,
    /// The workers that have signalled their readiness in vain.
    pub(super) told_ready: BTreeSet<Key>,
    /// Children whose last heartbeat the machine asks for.
    pub(super) heartbeats_due: Vec<(Key, IncarnationNumber)>,
    pub(super) end: Option<End>,
}

/// Aborts that wait for the next iteration; see invariant 2 of the [module](super).
#[derive(Debug, Default)]
pub(super) struct Aborts {
    /// Whether this iteration has cancelled or aborted a worker; see invariant 4.
    pub(super) has_stopped: bool,
    /// Children cancelled in this iteration while a deadline is due.
    pub(super) cancelled: BTreeSet<Key>,
    pub(super) postponed: Vec<(Key, IncarnationNumber)>,
}

/// The context of one step of the machine.
pub(super) struct Step {
    pub(super) now: Instant,
    /// Whether any lifecycle log line is enabled.
    pub(super) logged: bool,
    /// Whether anything subscribes to the tree's events.
    pub(super) published: bool,
    /// The exit that the step is about, for the reports and the decision that follow from it.
    pub(super) exit: Option<ExitInfo>,
    /// Children with mailboxes that are down, and may not come back.
    pub(super) down: Vec<Key>,
}

impl Step {
    /// Returns how this incarnation ended, if the step is about that.
    pub(super) fn exit_of(&self, key: Key, incarnation: IncarnationNumber) -> Option<&ExitInfo> {
        self.exit.as_ref().filter(|it| (it.key, it.incarnation) == (key, incarnation))
    }
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

impl Driver {
    pub(in crate::runtime) fn new(
        machine: Machine,
        shared: &Arc<SupervisorShared>,
        above: Option<Context>,
    ) -> Self {
        let blueprint = shared.blueprint();
        let parent = Arc::clone(shared) as _;
        Self {
            machine,
            user_code: UserCalls::new(blueprint.rules.random.as_ref(), fastrand::u64(..)),
            shared: Arc::clone(shared),
            children: ChildTable::new(parent, &blueprint),
            metrics: ChildMetrics::new(&shared.scope),
            blueprint,
            above,
            seen_level: StopLevel::None,
            batch: Batch::default(),
            effects: Vec::new(),
            timer: DeadlineTimer::default(),
            aborts: Aborts::default(),
            backlog: Backlog::default(),
            calls: Calls::default(),
            requirements: BTreeMap::new(),
            recent: Recent::default(),
            recodes: Vec::new(),
            fallbacks: BTreeMap::new(),
            leaked: BTreeSet::new(),
            lifetimes: BTreeMap::new(),
            given_up: None,
            start_failures: Vec::new(),
            callback_tasks: TaskSet::default(),
            health: HealthTasks::default(),
            leases: LeaseTasks::default(),
            waits: WaitReport::default(),
            told_ready: BTreeSet::new(),
            heartbeats_due: Vec::new(),
            end: None,
        }
    }
}
