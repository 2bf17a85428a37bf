//! The loop of one supervisor: wait, collect a batch, ask the machine, apply its effects.
//!
//! No rule is here. One iteration handles a bounded number of events and requests, and sends a bounded
//! number of answers and dead letters. So a storm of exits delays neither calls nor a stop, and a flood
//! of requests delays no restart. Items are handled in the order in which they were pushed, except that
//! a request waits for no more events than one iteration handles. The task yields between iterations
//! while there is more to do.
//!
//! # Invariants
//!
//! 1. However the driver goes (it returns, is dropped, polled or not, or its runtime ends), every child left was
//!    aborted, and then the end of the supervisor is announced exactly once.
//! 2. A child that is cancelled is polled before the end of its grace is checked, however short that
//!    is.
//! 3. The clock is read once per iteration.
//! 4. After an iteration that has cancelled or aborted a worker, the task is queued behind it, where any
//!    worker thread takes it from. So if that worker blocks its thread, the supervisor runs on another
//!    one, which also keeps the runtime's timers.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;

use super::attach::{Attachments, ExitInfo, Step, StepView};
use super::inbox::Batch;
use super::log;
use super::outcome::End;
use super::request::HandleRequest;
use super::shared::SupervisorShared;
use crate::child::{ChildSpec, Context, StopLevel};
use crate::clock::now;
use crate::core::{
    Declaration, Effect, IncarnationNumber, Key, Links, Machine, MachineEvent, RequirementId,
};
use crate::exit::ExitReason;
use crate::panic::catch_panic;
use crate::subscriber;

mod configure;
mod effects;
mod info;
mod requests;
mod state;
mod waits;

pub(crate) use self::configure::CHILDREN as CHILDREN_PER_REQUEST;
pub(super) use self::state::Driver;

/// How many events one iteration handles.
const EVENTS: usize = 256;
/// How many requests one iteration handles.
const REQUESTS: usize = 64;
/// For how many iterations a deadline is postponed while there are more events than one handles.
const POSTPONED: u32 = 64;

/// Queues the task of the supervisor again, behind the tasks that are ready.
///
/// `yield_now` isn't enough for invariant 4: it queues the task once its worker thread is done with the
/// others, and a thread that is blocked never is.
async fn reschedule() {
    let mut queued = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What the attachments see of a driver.
macro_rules! view {
    ($driver:expr, $step:expr, $now:expr) => {
        StepView {
            now: $now,
            machine: &$driver.machine,
            children: &$driver.children,
            blueprint: &$driver.blueprint,
            shared: &$driver.shared,
            above: $driver.above.as_ref(),
            leaked: &$driver.leaked,
            step: $step,
        }
    };
}

use view;

impl Driver {
    /// Runs the supervisor to its end.
    pub(super) async fn run(&mut self) -> End {
        self.add_declared();
        let mut last = self.shared.began;
        loop {
            poll_fn(|cx| self.poll_work(last, cx)).await;
            last = now();
            self.iterate(last);
            let has_left_work = self.has_left_work();
            if !has_left_work && let Some(end) = self.end.take() {
                self.attachments.finish(&self.shared).await;
                return self.finish(end);
            }
            if std::mem::take(&mut self.aborts.has_stopped) {
                reschedule().await;
            } else if has_left_work
                || self.has_taken_work()
                || self.is_due(last)
                || !self.shared.inbox.is_empty()
            {
                tokio::task::yield_now().await;
            }
        }
    }

    fn add_declared(&mut self) {
        let declared = Arc::clone(&self.blueprint.children);
        // Each child may require one that is declared after it, so all get their keys first.
        for (number, spec) in (0..).zip(declared.iter()) {
            self.children.add_declared(Key::of_number(number), spec);
        }
        for (number, spec) in (0..).zip(declared.iter()) {
            let key = self.declare(spec, None, self.shared.began);
            debug_assert_eq!(key, Key::of_number(number), "the key that it has in the table");
        }
    }

    /// Resolves when there is something to do. `last` is the time of the last iteration.
    fn poll_work(&mut self, last: Instant, cx: &mut task::Context<'_>) -> Poll<()> {
        // Also while the last iteration left something: otherwise a stop would wait for the end of a
        // storm.
        let pushed = self.shared.inbox.poll_take(cx, &mut self.batch);
        let stop = &mut |ctx: &Context| {
            ctx.incarnation.cell.poll_above_replacing(self.seen_level, cx).is_ready()
        };
        let stopped = self.above.as_ref().is_some_and(stop);
        if pushed.is_ready() || stopped || self.has_taken_work() || self.has_left_work() {
            return Poll::Ready(());
        }
        match self.machine.next_deadline().into_iter().chain(self.waits.next()).min() {
            Some(at) if at > last => self.timer.poll(at, cx),
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    /// Returns whether the last iteration has taken more than it handles.
    fn has_taken_work(&self) -> bool {
        !self.batch.is_empty() || !self.aborts.postponed.is_empty()
    }

    /// Returns whether the last iteration has sent as much as it may, and left the rest.
    fn has_left_work(&self) -> bool {
        !self.backlog.is_empty() || self.attachments.has_work()
    }

    /// Returns whether the next deadline is due.
    fn is_due(&self, now: Instant) -> bool {
        self.machine.next_deadline().is_some_and(|at| at <= now)
    }

    fn iterate(&mut self, now: Instant) {
        let due = self.is_due(now);
        let postponed = std::mem::take(&mut self.aborts.postponed);
        self.aborts.cancelled.clear();
        self.work_off(now);
        // A stop comes first, so that no child is started only to be stopped at once.
        self.handle_stop(now);
        let mut budget = EVENTS;
        if due || !postponed.is_empty() {
            self.handle_events(&mut budget, now, Batch::next_event);
        }
        for (key, incarnation) in postponed {
            if self.children.incarnation(key).is_some_and(|it| it.number == incarnation) {
                self.abort(key, now);
            }
        }
        for _ in 0..REQUESTS {
            self.handle_events(&mut budget, now, Batch::next_event_in_order);
            let Some(request) = self.batch.next_request() else { break };
            self.handle_request(request, now);
        }
        // An event waits for no more requests than these.
        self.handle_events(&mut budget, now, Batch::next_event);
        if due {
            self.handle_deadline(now);
        }
        if !self.pending.is_empty() {
            self.settle_pending(now);
        }
        if self.machine.stops_now().is_none() {
            self.shared.stop_chain.clear();
        }
        self.report_waits(now);
        if self.machine.is_ending() {
            self.shared.progress.stopping(now);
        }
    }

    fn handle_stop(&mut self, now: Instant) {
        if let Some(stop) = self.batch.stop.take() {
            self.shared.note_stop(&stop.reason);
            // A stop, also if it begins with an abort.
            self.stop(stop.level.min(StopLevel::Cancel), &stop.reason, now);
            self.stop(stop.level, &stop.reason, now);
        }
        let level = self.above.as_ref().map_or(StopLevel::None, |ctx| ctx.incarnation.cell.level());
        if level > self.seen_level {
            self.seen_level = level;
            let reason = self.shared.stop_reason();
            // So that a supervisor below finds it here, however deep the tree is.
            if let Some(reason) = &reason {
                self.shared.note_stop(reason);
            }
            self.stop(level, reason.as_deref().unwrap_or("cancelled by its supervisor"), now);
        }
    }

    fn stop(&mut self, level: StopLevel, reason: &str, now: Instant) {
        if level < StopLevel::Abort && !self.machine.is_ending() {
            log::shutting_down(&self.shared.tree.log_bounds, self.shared.path(), reason);
        }
        match level {
            StopLevel::None => {}
            StopLevel::Cancel => self.step(MachineEvent::Stop { within: None }, now),
            StopLevel::Close => self.step(MachineEvent::Close { all: false }, now),
            StopLevel::CloseAll => self.step(MachineEvent::Close { all: true }, now),
            StopLevel::Abort => self.step(MachineEvent::AbortAll, now),
        }
    }

    fn handle_events(
        &mut self,
        budget: &mut usize,
        now: Instant,
        next: fn(&mut Batch<HandleRequest>) -> Option<MachineEvent>,
    ) {
        while *budget > 0
            && let Some(event) = next(&mut self.batch)
        {
            *budget -= 1;
            self.handle_event(event, now);
        }
    }

    fn handle_event(&mut self, event: MachineEvent, now: Instant) {
        if let MachineEvent::Exited { key, incarnation, .. }
        | MachineEvent::Ignored { key, incarnation } = event
        {
            self.children.exited(key, incarnation);
            if self.leaked.remove(&(key, incarnation)) {
                self.shared.leak_ended(key, incarnation);
            }
            if let MachineEvent::Exited { reason, .. } = &event
                && self.machine.is_failing(key)
            {
                // The failure was decided on while the task still ran.
                self.gone(key, incarnation, &Arc::new(reason.clone()), now);
            }
        }
        if let MachineEvent::Ready { key, .. } = event {
            self.check_ready(key);
        }
        self.step(event, now);
    }

    /// Warns of a worker that signals its readiness in vain, once.
    fn check_ready(&mut self, key: Key) {
        let in_vain = self.machine.rules_of(key).is_some_and(|rules| !rules.spec.facts.signals);
        if let Some(entry) = self.children.entry_mut(key).filter(|_| in_vain)
            && !std::mem::replace(&mut entry.told_ready, true)
        {
            log::needless_ready(&self.children.path(key));
        }
    }

    /// Lets the machine handle the deadlines that are due.
    ///
    /// An exit that was pushed already is handled before its deadline is missed, unless exits never
    /// cease.
    fn handle_deadline(&mut self, now: Instant) {
        if self.batch.events.is_empty() || self.timer.postponed == POSTPONED {
            self.timer.postponed = 0;
            self.step(MachineEvent::Tick, now);
        } else {
            self.timer.postponed += 1;
        }
    }

    fn step(&mut self, event: MachineEvent, now: Instant) {
        let mut effects = std::mem::take(&mut self.effects);
        self.machine.on_event(event, now, &mut self.user_code, &mut effects);
        let (logged, published) = (subscriber::is_listening(), self.shared.tree.has_listeners());
        let mut step = Step { logged, published, exit: None };
        let followed = self.attachments.begin(&step, &self.shared);
        for effect in &effects {
            if let Effect::Ended { key, incarnation, ref reason, lived: lifetime } = *effect {
                let reason = Arc::clone(reason);
                step.exit = Some(ExitInfo { key, incarnation, reason, lifetime });
            }
            if followed || Attachments::is_notable(effect) {
                let (attachments, view) = self.attached(&step, now);
                attachments.before(effect, &view);
            }
            self.apply_effect(effect, &step, now);
        }
        effects.clear();
        self.effects = effects;
        if followed {
            let (attachments, view) = self.attached(&step, now);
            attachments.settled(&view);
        }
        for event in self.attachments.take_events() {
            self.step(event, now);
        }
    }

    /// Returns the attachments, and what they see.
    fn attached<'a>(
        &'a mut self,
        step: &'a Step,
        now: Instant,
    ) -> (&'a mut Attachments, StepView<'a>) {
        let view = view!(self, step, now);
        (&mut self.attachments, view)
    }

    /// Reports an incarnation that is gone, where no effect does.
    fn gone(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        reason: &Arc<ExitReason>,
        now: Instant,
    ) {
        let step = Step::default();
        let (attachments, view) = self.attached(&step, now);
        attachments.gone(key, incarnation, reason, &view);
    }

    /// Adds a child, last in start order or in the place of one that was removed.
    fn add(&mut self, spec: &ChildSpec, place: Option<u64>, now: Instant) -> Key {
        self.children.add(self.machine.next_key(), spec);
        self.declare(spec, place, now)
    }

    /// Adds a child of the table to the machine. Returns its key.
    fn declare(&mut self, spec: &ChildSpec, place: Option<u64>, now: Instant) -> Key {
        let (key, links) = (self.machine.next_key(), self.links(spec));
        let rules = self.resolve(spec.name(), &spec.options);
        self.step(MachineEvent::Declared(Declaration::Child { rules, links, place }), now);
        let step = Step::default();
        let (attachments, view) = self.attached(&step, now);
        attachments.declared(key, spec, &view);
        key
    }

    /// Returns what a child provides and requires, with numbers in place of names.
    fn links(&mut self, spec: &ChildSpec) -> Links {
        if !self.blueprint.is_dynamic() {
            self.shared.note_required(spec.name(), &spec.requires);
        }
        let provides = self.requirements.get(spec.name()).copied();
        let mut requires = Vec::with_capacity(spec.requires.len());
        for name in &spec.requires {
            if let Some(provider) = self.children.find(name) {
                let next = u32::try_from(self.requirements.len()).expect("fewer than 2^32 names");
                let id = self.requirements.entry(name.as_str().into());
                requires.push((*id.or_insert(RequirementId::Name(next)), provider));
            }
        }
        Links { provides, requires }
    }

    fn finish(&mut self, end: End) -> End {
        log::stopped(&self.shared.tree.log_bounds, self.shared.path());
        self.discard_events();
        end
    }

    /// Discards the events that are left. Messages that children have lost are reported nevertheless.
    fn discard_events(&mut self) {
        let mut cx = task::Context::from_waker(task::Waker::noop());
        let _ = self.shared.inbox.poll_take(&mut cx, &mut self.batch);
        while let Some(event) = self.batch.next_event() {
            if let MachineEvent::Exited { key, incarnation, reason } = &event {
                self.gone(*key, *incarnation, &Arc::new(reason.clone()), now());
                self.children.exited(*key, *incarnation);
            }
            self.shared.discard_event(event);
        }
    }

    /// Aborts all children. No exit will be handled, so the messages in hand are lost now.
    fn abort_children(&mut self) {
        let (aborted, now) = (Arc::new(ExitReason::Aborted), now());
        let incarnations: Vec<_> =
            self.children.incarnations().map(|it| (it.key, it.number)).collect();
        for (key, incarnation) in incarnations {
            self.gone(key, incarnation, &aborted, now);
        }
        self.children.abort_all();
    }

    /// Lets the supervisors below report their leaks, too.
    fn abort_below(&self) {
        for incarnation in self.children.incarnations() {
            if self.machine.is_supervisor(incarnation.key) {
                incarnation.cell.raise(StopLevel::Abort);
            }
        }
    }

    /// Reports workers that were to be aborted and still run as leaked. A supervisor below reports its
    /// own.
    fn report_leaks(&mut self) {
        let now = now();
        for incarnation in self.children.incarnations() {
            let (key, number) = (incarnation.key, incarnation.number);
            let worker = self.machine.rules_of(key).filter(|it| !it.is_supervisor());
            let Some(leak_timeout) = worker.map(|it| it.leak_timeout) else { continue };
            if self.leaked.insert((key, number)) {
                let waits = self.children.waits_for_thread(key, leak_timeout);
                self.shared.leaked(now, self.children.path(key), (key, number), waits);
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(std::mem::take(&mut self.backlog));
        self.attachments.drop_work();
        self.discard_events();
        // Also if the loop has not come to see it: the supervisor above no longer waits for this one.
        if self.above.as_ref().is_some_and(|ctx| ctx.incarnation.cell.level() == StopLevel::Abort) {
            self.report_leaks();
            self.abort_below();
        }
        self.abort_children();
        // The chain holds children, which hold this supervisor.
        self.shared.stop_chain.clear();
        let step = Step::default();
        let (attachments, view) = self.attached(&step, now());
        attachments.closed(&view);
    }
}

/// Runs a supervisor to its end, and returns what `meaning` makes of that.
///
/// If the future is dropped before it is ready, polled or not, every child is aborted, and the
/// supervisor has ended as aborted.
pub(crate) fn supervise<T: Send>(
    shared: Arc<SupervisorShared>,
    above: Option<Context>,
    meaning: fn(&End) -> T,
) -> impl Future<Output = T> + Send {
    shared.register();
    let mut running = EndGuard { shared, driver: None, end: End::Aborted };
    async move {
        // Boxed: the driver would be moved into the future, and the future into its task.
        let driver = Box::new(Driver::new(machine(&running.shared), &running.shared, above));
        running.end = running.driver.insert(driver).run().await;
        meaning(&running.end)
    }
}

fn machine(shared: &SupervisorShared) -> Machine {
    let (rules, blueprint) = (shared.rules(), shared.blueprint());
    match blueprint.is_dynamic() {
        true => Machine::dynamic(rules, shared.began),
        false => Machine::ordered(rules, blueprint.children.len(), shared.began),
    }
}

/// Announces the end of the supervisor when it is dropped.
struct EndGuard {
    shared: Arc<SupervisorShared>,
    driver: Option<Box<Driver>>,
    end: End,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let driver = self.driver.take();
        // Child factories are dropped with the driver, and may panic.
        catch_panic(|| drop(driver));
        self.shared.close(std::mem::replace(&mut self.end, End::Aborted));
    }
}
