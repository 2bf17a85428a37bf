//! What a running supervisor shares with its children, its handles and the supervisors above.
//!
//! No decision is made here. Events are put together only while someone in the tree listens.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, mem};

use super::attach::SharedAttachments;
use super::blueprint::Blueprint;
use super::channel::{Channel, EarlyEvents};
use super::dead_letters::DeadLetters;
use super::inbox::{StopRequest, SupervisorInbox};
use super::log;
use super::log_bounds::LineKind;
use super::outcome::{End, Progress, SupervisorPhase};
use super::request::HandleRequest;
use super::settings::Settings;
use super::stop_chain::StopChain;
use super::tree::{LeakId, StopRequests, Tree};
use crate::child::{BusySwitch, FencingToken, Incarnation, MailboxOwner, StopLevel};
use crate::clock::{Clocks, now};
use crate::core::{self, IncarnationNumber, Key};
use crate::dead_letter::Undelivered;
use crate::error::Forced;
use crate::exit::ExitReason;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::policy::{
    ChildOptions, ChildRules, FailureCallback, Layers, LetterLine, Resolver, Rules,
};
use crate::status::{Event, EventKind, Subscription};
use crate::sync::Mutex;

/// See the [module](self).
pub(crate) struct SupervisorShared {
    path: Path,
    pub(super) above: Option<Arc<SupervisorShared>>,
    pub(crate) tree: Arc<Tree<SupervisorShared>>,
    pub(crate) inbox: SupervisorInbox<HandleRequest>,
    pub(crate) progress: Progress,
    /// The rules in it can change.
    blueprint: Mutex<Arc<Blueprint>>,
    /// The longest leak timeout, if the supervisor is below a worker: that is aborted at the same time, and the children
    /// that leak are reported before the worker would be. No declaration shows that such a supervisor exists.
    pub(crate) below_worker: Option<Duration>,
    pub(crate) began: Instant,
    /// The fencing token with which it was started, or one above it.
    pub(crate) fencing_token: Option<FencingToken>,
    /// Decides on failures: the supervisor's own callback, or the nearest one above.
    pub(super) callback: Option<FailureCallback>,
    events: Channel<Event>,
    pub(crate) dead_letters: Arc<DeadLetters>,
    pub(super) attached: SharedAttachments,
    pub(super) stop_chain: StopChain,
    /// Of callers that check a new child, and of the driver.
    resolver: Mutex<Resolver>,
    /// The siblings that its children require, by child.
    requires: Mutex<HashMap<Box<str>, Arc<[String]>>>,
    /// Why it stops, once it does.
    stop_reason: Mutex<Option<Arc<str>>>,
}

impl SupervisorShared {
    pub(crate) fn root(
        blueprint: Arc<Blueprint>,
        settings: Arc<Settings>,
        early_events: EarlyEvents,
        clocks: Clocks,
        stops: Option<Arc<StopRequests>>,
    ) -> Arc<Self> {
        let name = Arc::clone(&blueprint.name);
        let (sender, listeners) = early_events.take();
        let busy = BusySwitch::new(blueprint.busy_time);
        let tree = Arc::new(Tree::new(name, settings, listeners, clocks, stops, busy));
        let mut root = Self::new(Path::root(&blueprint.name), None, tree, blueprint);
        root.began = clocks.read_at();
        root.events = sender.map(Channel::open).unwrap_or_default();
        root.refresh_rules();
        Arc::new(root)
    }

    /// Creates the shared state of a supervisor that is a child of this one, or of a worker below it.
    pub(crate) fn below(
        self: Arc<Self>,
        name: &Arc<str>,
        blueprint: Arc<Blueprint>,
        fencing_token: Option<FencingToken>,
        is_of_worker: bool,
    ) -> Arc<Self> {
        let below_worker = if is_of_worker {
            Some(self.blueprint().rules.leak_timeout / 2)
        } else {
            self.below_worker
        };
        let (path, tree) = (self.path.join(name), Arc::clone(&self.tree));
        let mut below = Self::new(path, Some(self), tree, blueprint);
        (below.fencing_token, below.below_worker) = (fencing_token, below_worker);
        below.refresh_rules();
        Arc::new(below)
    }

    fn new(
        path: Path,
        above: Option<Arc<Self>>,
        tree: Arc<Tree<Self>>,
        blueprint: Arc<Blueprint>,
    ) -> Self {
        let own = blueprint.on_child_failure.as_ref();
        let letters_above = above.as_ref().map(|above| Arc::clone(&above.dead_letters));
        let names = blueprint.declared_names();
        let dead_letters = DeadLetters::new(&blueprint.dead_letters, letters_above, &path, names);
        let callback = own.or(above.as_ref().and_then(|above| above.callback.as_ref())).cloned();
        Self {
            path,
            above,
            tree,
            inbox: SupervisorInbox::new(),
            progress: Progress::new(),
            blueprint: Mutex::new(blueprint),
            below_worker: None,
            began: now(),
            fencing_token: None,
            callback,
            events: Channel::default(),
            dead_letters,
            attached: SharedAttachments::default(),
            stop_chain: StopChain::default(),
            resolver: Mutex::default(),
            requires: Mutex::default(),
            stop_reason: Mutex::new(None),
        }
    }

    /// Returns the rules of a child.
    pub(crate) fn resolve(
        &self,
        spec: &Arc<ChildOptions>,
        rules: &Arc<Rules>,
        layers: Layers,
    ) -> Arc<ChildRules> {
        let mut resolver = self.resolver.lock().clone();
        let resolved = resolver.resolve(spec, rules, layers);
        // What a user has written isn't dropped under the lock.
        let before = mem::replace(&mut *self.resolver.lock(), resolver);
        drop(before);
        resolved
    }

    pub(crate) fn blueprint(&self) -> Arc<Blueprint> {
        Arc::clone(&self.blueprint.lock())
    }

    /// Replaces the code of the supervisor. Its values are looked up by the next call.
    pub(super) fn set_blueprint(self: &Arc<Self>, blueprint: Arc<Blueprint>) {
        self.dead_letters.declare(blueprint.declared_names());
        *self.blueprint.lock() = blueprint;
        self.announce();
    }

    /// Tells the value that its description was made with where the supervisor runs.
    fn announce(self: &Arc<Self>) {
        if let Some(registration) = &self.blueprint().registration {
            registration.registered(self);
        }
    }

    /// Looks up the values of this supervisor again.
    pub(super) fn refresh_rules(&self) -> Arc<Blueprint> {
        let mut blueprint = self.blueprint.lock();
        let layer = self.tree.settings.supervisor(|| self.path().clone());
        let mut rules = Rules::layered(&blueprint.rules, layer);
        if let Some(longest) = self.below_worker.filter(|&longest| longest < rules.leak_timeout) {
            rules = Arc::new(Rules { leak_timeout: longest, ..Rules::clone(&rules) });
        }
        if !Arc::ptr_eq(&rules, &blueprint.rules) {
            *blueprint = blueprint.with_rules(rules);
        }
        Arc::clone(&blueprint)
    }

    /// Returns the rules, with the callback that may come from above.
    pub(super) fn rules(&self) -> Arc<Rules> {
        let has_failure_callback = self.callback.is_some();
        let blueprint = self.blueprint.lock();
        match &blueprint.rules {
            rules if rules.has_failure_callback == has_failure_callback => Arc::clone(rules),
            rules => Arc::new(Rules { has_failure_callback, ..Rules::clone(rules) }),
        }
    }

    /// Returns what is written over the code of a child with this name.
    pub(super) fn layers(&self, name: &str, awaits_config: bool) -> Layers {
        self.tree.settings.layers(|| self.path().clone(), name, awaits_config)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes which siblings a child requires.
    pub(super) fn note_required(&self, child: &str, required: &[String]) {
        let mut requires = self.requires.lock();
        if !required.is_empty() {
            requires.insert(child.into(), required.into());
        } else if !requires.is_empty() {
            requires.remove(child);
        }
    }

    /// Returns the names of the siblings that a child requires.
    pub(crate) fn required_by(&self, child: &str) -> Arc<[String]> {
        let requires = self.requires.lock();
        if requires.is_empty() {
            Arc::default()
        } else {
            requires.get(child).cloned().unwrap_or_default()
        }
    }

    /// Returns this supervisor and all above it.
    pub(crate) fn upward(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |supervisor| supervisor.above.as_deref())
    }

    pub(super) fn register(self: &Arc<Self>) {
        self.tree.registry.insert(self.path.clone(), Arc::clone(self));
        self.announce();
    }

    /// Removes the ended supervisor from the tree, and resolves everything that waits for it.
    pub(crate) fn close(self: &Arc<Self>, end: End) {
        self.tree.registry.remove(&self.path, self);
        let mut left = self.inbox.close();
        while let Some(event) = left.next_event() {
            self.discard_event(event);
        }
        // Dropping a request answers it.
        catch_panic(|| drop(left));
        self.events.close();
        self.dead_letters.close();
        self.progress.ended(end, self.leaked_below());
    }

    /// Pushes an event into the inbox. An exit also cancels the next child of the stop chain.
    pub(crate) fn push_event(&self, event: core::MachineEvent) {
        let exited = match event {
            core::MachineEvent::Exited { key, incarnation, .. } => Some((key, incarnation)),
            _ => None,
        };
        match self.inbox.push_event(event) {
            Ok(()) => {
                if let Some(exited) = exited {
                    self.stop_chain.exited(exited);
                }
            }
            Err(event) => self.discard_event(event),
        }
    }

    /// Returns what takes the requests to stop this root, if it runs as a program.
    pub(crate) fn program_stops(&self) -> Option<&StopRequests> {
        self.tree.stops.as_deref().filter(|_| self.above.is_none())
    }

    /// Notes why the supervisor stops. The first reason is kept.
    pub(crate) fn note_stop(&self, reason: &Arc<str>) {
        self.stop_reason.lock().get_or_insert_with(|| Arc::clone(reason));
    }

    /// Returns why the supervisor stops, or the nearest one above that does.
    pub(crate) fn stop_reason(&self) -> Option<Arc<str>> {
        self.upward().find_map(|supervisor| supervisor.stop_reason.lock().clone())
    }

    /// Discards an event that the ended supervisor can't handle any more, but notes the end of a leak.
    pub(super) fn discard_event(&self, event: core::MachineEvent) {
        if let core::MachineEvent::Exited { key, incarnation, .. }
        | core::MachineEvent::Ignored { key, incarnation } = event
        {
            self.leak_ended(key, incarnation);
        }
        // Values in the event may panic while they are dropped.
        catch_panic(|| drop(event));
    }

    /// Reports that a child was aborted and still runs. `waits`: it only waits for a thread that another child blocks.
    pub(super) fn leaked(
        &self,
        now: Instant,
        path: Path,
        (key, incarnation): (Key, IncarnationNumber),
        waits: bool,
    ) {
        log::leaked(&self.tree.log_bounds, &path, incarnation, waits);
        self.tree.leaks.insert(self.leak_id(key, incarnation), path.clone(), waits);
        self.publish(now, path, incarnation, || EventKind::Leaked);
    }

    /// Reports the end of a leaked child. Has no effect for any other child.
    pub(super) fn leak_ended(&self, key: Key, incarnation: IncarnationNumber) {
        let Some(path) = self.tree.leaks.remove(self.leak_id(key, incarnation)) else { return };
        log::leak_ended(&self.tree.log_bounds, &path, incarnation);
        self.publish(now(), path, incarnation, || EventKind::LeakEnded);
    }

    fn leak_id(&self, key: Key, incarnation: IncarnationNumber) -> LeakId {
        LeakId { supervisor: std::ptr::from_ref(self).addr(), key, incarnation }
    }

    /// Notes that a child was killed in a stop, for this supervisor and all above that stop with it.
    pub(super) fn note_killed(&self, child: &Path) {
        self.upward().take_while(|it| it.progress.note_killed(child)).for_each(drop);
    }

    /// Returns the leaked children below this supervisor, except those that only wait for a thread.
    pub(crate) fn leaked_below(&self) -> Vec<Path> {
        self.tree.leaks.below(&self.path)
    }

    /// Returns the children that had to be forced when the supervisor stopped.
    pub(crate) fn forced(&self) -> Forced {
        let Forced { mut killed, leaked } = self.progress.forced();
        // A worker that waits for its own children in vain is aborted, but they are the cause.
        let mut named: HashSet<_> = leaked.iter().cloned().collect();
        for child in killed.iter().chain(&leaked) {
            named.extend(child.ancestors());
        }
        killed.retain(|child| !named.contains(child));
        Forced { killed, leaked }
    }

    /// The same, but the children that have leaked and exited since don't run any more.
    pub(crate) fn forced_now(&self) -> Forced {
        let Forced { mut killed, leaked } = self.forced();
        if leaked.is_empty() {
            return Forced { killed, leaked };
        }
        let running: HashSet<_> = self.leaked_below().into_iter().collect();
        let (leaked, exited): (_, Vec<_>) =
            leaked.into_iter().partition(|child| running.contains(child));
        killed.extend(exited);
        Forced { killed, leaked }
    }

    /// Returns what the stop of this root waits for, without asking a supervisor's task.
    ///
    /// These are the leaked children and, for each supervisor, the child that its ordered stop waits
    /// for, unless that is a supervisor that waits for a child itself.
    pub(crate) fn still_running(&self) -> Vec<Path> {
        let awaited = |it: Arc<Self>| {
            let child = it.stop_chain.awaited()?;
            Some((it.path().clone(), child.path()))
        };
        let awaited: HashMap<_, _> =
            self.tree.registry.all().into_iter().filter_map(awaited).collect();
        let mut paths = self.leaked_below();
        paths.extend(awaited.values().filter(|child| !awaited.contains_key(child)).cloned());
        paths
    }

    pub(crate) fn subscribe_events(&self) -> Subscription<Event> {
        Subscription::new(self.events.subscribe(), Some(Arc::clone(&self.tree.listeners)))
    }

    /// Sends an event to the subscribers of this supervisor and of all above.
    pub(crate) fn publish(
        &self,
        now: Instant,
        path: Path,
        incarnation: IncarnationNumber,
        kind: impl FnOnce() -> EventKind,
    ) {
        if !self.tree.has_listeners() {
            return;
        }
        let (seq, at, kind) = (self.tree.next_seq(), self.tree.wall_clock(now), kind());
        let event = Event { seq, at, path, incarnation, kind };
        for supervisor in self.upward() {
            supervisor.events.send(&event);
        }
    }

    /// Logs and publishes that a child has become unhealthy, or healthy again (`None`).
    pub(crate) fn publish_health(
        &self,
        now: Instant,
        path: Path,
        incarnation: IncarnationNumber,
        problem: Option<Arc<str>>,
    ) {
        let bounds = &self.tree.log_bounds;
        match problem {
            Some(problem) => {
                log::unhealthy(bounds, &path, incarnation, &problem);
                self.publish(now, path, incarnation, || EventKind::Unhealthy { problem });
            }
            None => {
                log::healthy(bounds, &path, incarnation);
                self.publish(now, path, incarnation, || EventKind::Healthy);
            }
        }
    }
}

/// As its children see it.
impl SupervisorShared {
    /// Counts a log line about a panic of this child. Returns how it is logged, or `None` if it isn't.
    pub(crate) fn panic_line(&self, child: &Path) -> Option<LetterLine> {
        self.tree.log_bounds.count(child, LineKind::Panicked)
    }

    /// Reports a `deactivate` that failed.
    pub(crate) fn deactivate_failed(&self, incarnation: &Incarnation, reason: ExitReason) {
        let path = incarnation.path();
        log::deactivate_failed(&self.tree.log_bounds, &path, incarnation.number, &reason);
        let kind = || EventKind::DeactivateFailed { reason: Arc::new(reason) };
        self.publish(now(), path, incarnation.number, kind);
    }

    /// Creates a supervisor that doesn't run.
    #[cfg(test)]
    pub(crate) fn idle() -> Arc<Self> {
        let app = crate::Supervisor::builder("app").build().expect("a valid tree");
        Self::root(app.blueprint(), Arc::default(), EarlyEvents::default(), Clocks::read(), None)
    }
}

/// A supervisor, as the mailboxes of its children see it.
impl MailboxOwner for SupervisorShared {
    fn path(&self) -> Path {
        self.path().clone()
    }

    fn dead_letter(&self, undelivered: Undelivered, now: Instant) {
        self.dead_letters.undelivered(undelivered, now, self.tree.wall_clock(now));
    }

    fn notify(&self, event: core::MachineEvent) {
        self.push_event(event);
    }
}

/// As the worker sees it whose incarnation it belongs to.
impl SupervisorShared {
    /// Stops it as urgently as `level`.
    pub(crate) fn stop(&self, level: StopLevel) {
        let reason =
            self.stop_reason().unwrap_or_else(|| format!("`{}` stops", self.path()).into());
        self.inbox.push_stop(StopRequest { reason, level });
    }

    pub(crate) async fn until_ended(&self) {
        self.progress.until_ended().await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.progress.phase(), SupervisorPhase::Ended { .. })
    }
}

impl fmt::Debug for SupervisorShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorShared").field("path", self.path()).finish_non_exhaustive()
    }
}
