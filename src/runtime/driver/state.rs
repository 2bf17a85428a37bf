//! The state of a supervisor's loop, and its timer.

use std::collections::{BTreeSet, HashMap};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;

use rustc_hash::FxHashSet;
use tokio::time::Sleep;

use super::requests::{Backlog, Calls};
use super::waits::WaitReport;
use crate::child::{Context, StopLevel};
use crate::core::{Effect, IncarnationNumber, Key, Machine, RequirementId, UserCalls};
use crate::path::Path;
use crate::runtime::attach::Attachments;
use crate::runtime::blueprint::Blueprint;
use crate::runtime::children::ChildTable;
use crate::runtime::inbox::Batch;
use crate::runtime::outcome::{Cause, End};
use crate::runtime::request::{HandleRequest, Pending};
use crate::runtime::shared::SupervisorShared;

/// The loop of one supervisor; see the [module](super).
pub(in crate::runtime) struct Driver {
    pub(super) machine: Machine,
    pub(super) user_code: UserCalls,
    /// That of `shared`, with the rules that the machine has.
    pub(super) blueprint: Arc<Blueprint>,
    pub(super) shared: Arc<SupervisorShared>,
    pub(super) children: ChildTable,
    pub(super) attachments: Attachments,
    /// This supervisor as a child of the one above, or `None` for a root.
    pub(super) above: Option<Context>,
    /// The stop level that was handled last.
    pub(super) seen_level: StopLevel,
    pub(super) batch: Batch<HandleRequest>,
    pub(super) effects: Vec<Effect>,
    pub(super) timer: DeadlineTimer,
    pub(super) aborts: Aborts,
    pub(super) backlog: Backlog,
    pub(super) calls: Calls,
    /// What siblings require by name. A new child of that name provides it again.
    pub(super) requirements: HashMap<Arc<str>, RequirementId>,
    /// New code, and children that replace others.
    pub(super) pending: Vec<Pending>,
    pub(super) leaked: FxHashSet<(Key, IncarnationNumber)>,
    /// The child that was given up last. It may be forgotten before the supervisor ends.
    pub(super) given_up: Option<(Key, Path)>,
    /// The child that has ended the first start, and those that failed after it.
    pub(super) start_failures: Vec<Cause>,
    pub(super) waits: WaitReport,
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
            attachments: Attachments::new(shared),
            blueprint,
            above,
            seen_level: StopLevel::None,
            batch: Batch::default(),
            effects: Vec::new(),
            timer: DeadlineTimer::default(),
            aborts: Aborts::default(),
            backlog: Backlog::default(),
            calls: Calls::default(),
            requirements: HashMap::new(),
            pending: Vec::new(),
            leaked: FxHashSet::default(),
            given_up: None,
            start_failures: Vec::new(),
            waits: WaitReport::default(),
            end: None,
        }
    }
}

/// The timer for the next deadline of a supervisor.
#[derive(Debug, Default)]
pub(super) struct DeadlineTimer {
    /// Created for the first deadline.
    sleep: Option<Pin<Box<Sleep>>>,
    /// For how many iterations the deadline that is due was postponed.
    pub(super) postponed: u32,
}

impl DeadlineTimer {
    pub(super) fn poll(&mut self, at: Instant, cx: &mut task::Context<'_>) -> Poll<()> {
        let at = tokio::time::Instant::from_std(at);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}
