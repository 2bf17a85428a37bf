//! What can be seen of a machine from outside: its children, its counts, its deadlines, and what an operation waits for.
//!
//! Nothing here changes a machine or decides anything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    ChildAnswer, ChildState, Children, Dynamic, GroupPhase, IncarnationNumber, Key, Machine,
    Ordered, RequirementId, StopReason, Timer, each,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{AbortKind, ChildRules, Intensity, RestartPolicy, Strategy};

/// The state of one child.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) rules: Arc<ChildRules>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) incarnation: IncarnationNumber,
    /// Whether nothing more is expected of the child than what it does.
    pub(crate) settled: bool,
    /// When the child was added.
    pub(crate) created: Instant,
    /// When the current or last incarnation was started.
    pub(crate) started: Option<Instant>,
    /// When the child entered this lifecycle state.
    pub(crate) since: Instant,
    /// Why the child is in this state, where its lifecycle alone does not tell.
    pub(crate) why: Option<&'static str>,
    /// Whether a caller keeps the child from being started.
    pub(crate) held: bool,
    /// Whether the failure callback is deciding on the child.
    pub(crate) undecided: bool,
    /// The restart policy that the current or last incarnation has set for itself.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    pub(crate) history: Option<FailureSummary>,
    /// The child's own limit, and how many restarts count for it.
    pub(crate) limit: Option<(Intensity, usize)>,
}

/// How an incarnation ended.
#[derive(Clone, Debug)]
pub(crate) struct PastExit {
    pub(crate) reason: Arc<ExitReason>,
    pub(crate) incarnation: IncarnationNumber,
    pub(crate) at: Instant,
    /// How long the child had been Active, if it was.
    pub(crate) lived: Option<Duration>,
}

/// The failures of one child so far.
#[derive(Clone, Debug)]
pub(crate) struct FailureSummary {
    /// Failures in a row: from 1 while one is waited out, 0 once the child is healthy.
    pub(crate) attempt: u32,
    /// When the next attempt is due, and the delay that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    pub(crate) last: Option<PastExit>,
}

/// How many children a supervisor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildCounts {
    pub(crate) by_lifecycle: [u32; 8],
    pub(crate) supervisors: u32,
}

impl ChildCounts {
    pub(crate) fn specs(&self) -> u32 {
        self.by_lifecycle.iter().sum()
    }

    pub(crate) fn of(&self, lifecycle: Lifecycle) -> u32 {
        self.by_lifecycle[lifecycle as usize]
    }

    pub(super) fn add(&mut self, rules: &ChildRules) {
        self.by_lifecycle[Lifecycle::Discovered as usize] += 1;
        self.supervisors += u32::from(rules.is_supervisor());
    }

    pub(super) fn remove(&mut self, rules: &ChildRules, last: Lifecycle) {
        self.by_lifecycle[last as usize] -= 1;
        self.supervisors -= u32::from(rules.is_supervisor());
    }

    /// A fallback replaces a child.
    pub(super) fn replaced(&mut self, old: &ChildRules, new: &ChildRules) {
        self.supervisors += u32::from(new.is_supervisor());
        self.supervisors -= u32::from(old.is_supervisor());
    }

    pub(super) fn moved(&mut self, from: Lifecycle, to: Lifecycle) {
        self.by_lifecycle[from as usize] -= 1;
        self.by_lifecycle[to as usize] += 1;
    }
}

impl Machine {
    /// Returns when the next [`MachineEvent::Tick`] is due. An instant in the past is due at once.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match each!(self, kind => kind.more) {
            None => self.children().timers.next(),
            more => more,
        }
    }

    /// Checks whether a child may be added now.
    ///
    /// # Errors
    ///
    /// The answer to the caller, if not.
    pub(crate) fn admits(&self) -> Result<(), ChildAnswer> {
        match self {
            _ if self.is_ending() => Err(ChildAnswer::ShuttingDown),
            Self::Ordered(_) => Ok(()),
            Self::Dynamic(dynamic) => dynamic.admits(),
        }
    }

    /// Returns the key of the child that is declared next.
    pub(crate) fn next_key(&self) -> Key {
        self.children().entries.next_key()
    }

    /// Whether an operation on several children runs, such as a group restart.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.group.is_some())
    }

    /// Whether a failure of one child may restart others.
    pub(crate) fn restarts_groups(&self) -> bool {
        matches!(self, Self::Ordered(_)) && self.children().rules.strategy != Strategy::OneForOne
    }

    /// Returns a chain from one of `keys` to a child that requires `id`, if there is one. Each child
    /// of the chain requires the next.
    pub(crate) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children().requirements.chain_to(id, keys)
    }

    /// Returns the rules of a child.
    pub(crate) fn rules_of(&self, key: Key) -> Option<&Arc<ChildRules>> {
        self.children().entries.get(key).map(|entry| &entry.rules)
    }

    /// Whether the child is a supervisor.
    pub(crate) fn is_supervisor(&self, key: Key) -> bool {
        self.rules_of(key).is_some_and(|rules| rules.is_supervisor())
    }

    /// Returns what an abort of the child in a stop means.
    pub(crate) fn abort_kind(&self, key: Key) -> Option<AbortKind> {
        self.rules_of(key).map(|rules| rules.shutdown.abort_kind())
    }

    pub(crate) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let mut view = self.children().view(key, now)?;
        if let Self::Ordered(ordered) = self
            && let Some(moved) = ordered.group_deadline(key)
            && let Some((at, _)) = view.history.as_mut().and_then(|history| history.next.as_mut())
        {
            *at = moved;
        }
        Some(view)
    }

    /// Returns when a child is aborted that is being stopped, if it isn't down before.
    pub(crate) fn abort_at(&self, key: Key) -> Option<Instant> {
        self.children().abort_at(key)
    }

    /// Whether the child provides what its siblings require of it.
    pub(crate) fn is_met(&self, key: Key) -> bool {
        self.children().state(key).is_some_and(ChildState::is_met)
    }

    /// Whether the child runs, or will without a request of a caller, so that its messages need not be
    /// dead letters.
    ///
    /// `false` if the supervisor ends. A child that is about to end, or is being decided on, is taken
    /// to come back.
    pub(crate) fn returns(&self, key: Key) -> bool {
        !self.is_ending() && each!(self, kind => kind.comes_back(key))
    }

    /// Whether the child is down until a message comes for it, and no message waits.
    pub(crate) fn awaits_message(&self, key: Key) -> bool {
        !self.is_ending() && self.children().awaits_message(key)
    }

    /// The child whose end an ordered stop waits for, or the child that it comes to next if that one is
    /// down already. The stop is that of the supervisor, or of a group that restarts.
    pub(crate) fn stops_now(&self) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_now(),
            // All children stop at once.
            Self::Dynamic(_) => None,
        }
    }

    /// The worker that is cancelled when this child is down. The child is the one that
    /// [stops now](Self::stops_now), or comes after it in the same way.
    ///
    /// The answer stays valid, whatever else happens, until `stops_now` is `None` or all children are
    /// aborted.
    pub(crate) fn stops_after(&self, key: Key) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_after(key),
            Self::Dynamic(_) => None,
        }
    }

    /// Whether the child has failed and is stopped because of that.
    pub(crate) fn is_failing(&self, key: Key) -> bool {
        let state = self.children().state(key);
        matches!(state, Some(ChildState::Stopping { why: StopReason::Failing { .. }, .. }))
    }

    /// Returns the first child at or behind a place in the start order, and the place behind it.
    ///
    /// Places are numbered from 0. A child keeps its place when other children are removed.
    pub(crate) fn next(&self, place: u64) -> Option<(Key, u64)> {
        each!(self, kind => kind.next(place))
    }

    /// Returns the place of a child in the start order.
    pub(crate) fn place_of(&self, key: Key) -> Option<u64> {
        self.children().entries.get(key).map(|entry| entry.pos)
    }

    /// Returns how many active children the supervisor lacks until it is ready.
    pub(crate) fn lacks_active(&self) -> u32 {
        let children = self.children();
        children.rules.min_ready.saturating_sub(children.counts.of(Lifecycle::Active))
    }

    pub(crate) fn counts(&self) -> ChildCounts {
        self.children().counts
    }

    /// Returns how many restarts count at `now`, how many may, and within which period.
    pub(crate) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children().intensity(now)
    }

    /// The same for the limit that is the first to end this child: its own, if it has one.
    pub(crate) fn intensity_of(&self, key: Key, now: Instant) -> (usize, Option<u32>, Duration) {
        match self.children().own_intensity(key, now) {
            Some((limit, used)) => (used, Some(limit.max()), limit.period()),
            None => self.intensity(now),
        }
    }
}

/// How many children are looked at.
const LOOKED_AT: usize = 1024;

/// An operation that concerns several children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Stop,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// The child has to be ready.
    Readiness,
    /// The child lacks a requirement, which this child provides.
    Requirement(Option<Key>),
    /// The child is started again after this time.
    Restart(Duration),
    /// The failure callback has to decide on the child.
    Decision,
    /// The child was cancelled. `None`: it has no grace that ends.
    Stop { left: Option<Duration> },
    /// The child was aborted this long ago.
    Abort { since: Duration },
}

impl Machine {
    /// Returns the operation that is under way.
    pub(crate) fn operation(&self) -> Option<Operation> {
        match self {
            Self::Ordered(ordered) => match ordered.group.as_ref()?.phase {
                GroupPhase::Stopping { .. } => Some(Operation::Stop),
                GroupPhase::Waiting => None,
                GroupPhase::Starting { .. } => Some(Operation::Start),
            },
            Self::Dynamic(dynamic) => dynamic.is_finishing().then_some(Operation::Stop),
        }
    }

    /// Returns what the operation waits for, at most `max` children.
    pub(crate) fn waits(&self, now: Instant, max: usize) -> Vec<(Key, WaitReason)> {
        let reason = |key| Some((key, self.children().wait_reason(key, now)?));
        each!(self, kind => kind.awaited()).filter_map(reason).take(max).collect()
    }
}

impl Ordered {
    /// Returns the children that the group operation may wait for, in the order in which it comes to them.
    fn awaited(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self.group.as_ref().map(|op| op.phase) {
            Some(GroupPhase::Stopping { .. }) => {
                let before = |&(pos, _): &(_, Key)| self.order.last_before(pos);
                let keys = std::iter::successors(self.order.last_before(self.next_pos), before);
                let is_stopping =
                    |key| matches!(self.children.state(key), Some(ChildState::Stopping { .. }));
                Box::new(
                    keys.take(LOOKED_AT).map(|(_, key)| key).filter(move |&key| is_stopping(key)),
                )
            }
            Some(GroupPhase::Starting { cursor, .. }) => {
                let behind = |&(pos, _): &(_, Key)| self.order.first_from(pos + 1);
                let keys = std::iter::successors(self.order.first_from(cursor), behind);
                let keys = keys.take(LOOKED_AT).map(|(_, key)| key);
                Box::new(keys.filter(|&key| !self.lets_next_start(key)))
            }
            Some(GroupPhase::Waiting) | None => Box::new(std::iter::empty()),
        }
    }
}

impl Dynamic {
    fn awaited(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        let next = |&(_, place): &(Key, u64)| self.next(place);
        let keys = std::iter::successors(self.next(0), next);
        Box::new(keys.take(LOOKED_AT).map(|(key, _)| key))
    }
}

impl Children {
    /// Returns when the child is aborted that is being stopped. `None`: nothing bounds its stop, or it is not stopped.
    fn abort_at(&self, key: Key) -> Option<Instant> {
        let stops = matches!(self.state(key), Some(ChildState::Stopping { aborted: false, .. }));
        if !stops {
            return None;
        }
        let shared = || self.shutdown(key).grace().and_then(|it| self.timers.at(Timer::Grace(it)));
        let own = self.timers.at(Timer::Child(key)).or_else(shared);
        own.into_iter().chain(self.timers.at(Timer::Total)).min()
    }

    /// What an operation that waits for this child waits for.
    fn wait_reason(&self, key: Key, now: Instant) -> Option<WaitReason> {
        let entry = self.entries.get(key)?;
        let left = |timer| {
            let at = self.timers.at(timer)?;
            Some(at.saturating_duration_since(now))
        };
        Some(match entry.state {
            ChildState::Activating => WaitReason::Readiness,
            ChildState::Gated(_) => WaitReason::Requirement(
                self.requirements.lacks(key).and_then(|(_, provider)| provider),
            ),
            ChildState::Backoff(_) => {
                WaitReason::Restart(left(Timer::Child(key)).unwrap_or_default())
            }
            ChildState::AwaitingGroup => {
                WaitReason::Restart(left(Timer::Group).unwrap_or_default())
            }
            ChildState::AwaitingDecision { .. } => WaitReason::Decision,
            ChildState::Stopping { aborted: true, .. } => {
                let left = left(Timer::Child(key)).unwrap_or_default();
                WaitReason::Abort { since: entry.rules.leak_timeout.saturating_sub(left) }
            }
            ChildState::Stopping { aborted: false, .. } => {
                let left = |at: Instant| at.saturating_duration_since(now);
                WaitReason::Stop { left: self.abort_at(key).map(left) }
            }
            ChildState::Active | ChildState::Down(_) => return None,
        })
    }
}
