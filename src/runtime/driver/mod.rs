//! The loop of one supervisor: wait, ask the machine, do what it says.
//!
//! No rule lives here. In one turn the driver takes a bounded number of events and of requests, so
//! that under a storm of exits callers are still answered and a stop is still heard, and a flood of
//! requests holds up no restart. They are taken as they came, but a request waits for no more events
//! than one turn takes. The supervisor's task gives way to others between turns, and first of all to
//! callers that were answered; somebody else takes one turn and leaves the rest to it.
//!
//! # Invariants
//!
//! 1. Whatever way the driver goes (it returns, is dropped, or its runtime ends), no child is left
//!    that was not aborted.
//! 2. A child that was asked to stop is polled before the end of its grace is looked at, however
//!    short that is.

mod asking;
mod effects;
mod health;
mod mailboxes;
mod requests;
mod turns;

use std::any::Any;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::Sleep;
use tracing::Span;

use self::asking::Questions;
use self::health::Health;
use super::end::End;
use super::few::Few;
use super::hub::Hub;
use super::inbox::Batch;
use super::queue::Queue;
use super::request::{Answer, ChildName, Request, Started};
use super::tasks::Tasks;
use super::trace;
use crate::child::{ChildSpec, Context, StopLevel};
use crate::clock::now;
use crate::core::{Effect, Event, Incarnation, Key, Machine, RequirementId, Ticket};
use crate::exit::ExitReason;
use crate::path::Path;

/// Events taken in one turn.
const EVENTS: usize = 256;
/// Requests taken in one turn.
const REQUESTS: usize = 64;
/// Turns that a deadline may be put off, while there are more events than one turn takes.
const PATIENCE: u32 = 64;
/// Children described in one answer: some ten microseconds of work for both who take part. tokio
/// lets its timers, and tasks that give way, wait for 61 polls, and all of these together are to take
/// less than a millisecond. More in one answer would hardly make a snapshot faster.
const PAGE: usize = 16;

thread_local! {
    /// Room for what a machine says in one step, for all supervisors whose turn it is on a thread.
    /// One of ten children took 5 KB for its own, and five allocations to get there.
    static EFFECTS: Cell<Vec<Effect>> = const { Cell::new(Vec::new()) };
}

/// See the [module](self).
pub(super) struct Driver<M: Machine> {
    machine: M,
    hub: Arc<Hub>,
    tasks: Tasks,
    /// When the last turn was: the clock is read once for each, and a deadline that has come since is
    /// noticed by the sleep. `None`: there was none.
    last_turn: Option<Instant>,
    batch: Batch<Request>,
    /// What children are required by name, so that the next one of that name is it again.
    required: Few<Arc<str>, RequirementId>,
    /// Who waits.
    callers: Few<Ticket, Caller>,
    next_ticket: Ticket,
    /// Made for the first deadline: most supervisors never have one before they stop.
    sleep: Option<Pin<Box<Sleep>>>,
    /// What the supervisor is to its own supervisor.
    above: Option<Context>,
    heard: StopLevel,
    /// Who was asked to stop in this turn while some deadline, maybe theirs, has come already.
    asked: Few<Key, ()>,
    /// Who is to be aborted in the next turn, so that he has heard before that he is to stop.
    late: Queue<(Key, Incarnation)>,
    /// Somebody was answered in this turn.
    answered: bool,
    /// Others are to have a turn before the next one, which somebody else than the supervisor's task has
    /// left to it.
    yields: bool,
    /// For how many turns a deadline was put off.
    overdue: u32,
    /// Who has leaked, so that it can be told when he ends.
    leaked: Few<(Key, Incarnation), ()>,
    /// How long those had been Active that have failed and are yet to be decided on.
    lived: Few<Key, (Incarnation, Duration)>,
    /// The child that the supervisor gave up on last; it may be forgotten before the end.
    given_up: Option<Box<(Key, Path)>>,
    /// What takes the place of children that fail too often. Few have that.
    fallbacks: Few<Key, Arc<ChildSpec>>,
    audience: Audience,
    /// Some child has something that goes by its edges: a mailbox, a health check, or a fallback
    /// that may have them; or somebody is asked about failures.
    heeds_edges: bool,
    /// Some child is a supervisor, or has been.
    supervises: bool,
    end: Option<End>,
    questions: Questions,
    health: Health,
    /// That of the supervisor's task.
    span: Option<Box<Span>>,
    /// What a turn panicked with that somebody else took: it is the panic of the supervisor's task.
    panic: Option<Box<dyn Any + Send>>,
}

/// What is known while one step of the machine is carried out.
struct Step<'a> {
    now: Instant,
    /// The end that was told, for the edges and the decision that follow from it.
    ending: Option<Ending>,
    /// Who asks. Most are answered in the same step, and never come to those who wait.
    asking: &'a mut Option<(Ticket, Caller)>,
    /// Children with a mailbox that have come down, maybe for good.
    down: Vec<Key>,
}

impl Step<'_> {
    /// How this incarnation has ended, if it is the one.
    fn ending(&self, key: Key, incarnation: Incarnation) -> Option<&Ending> {
        self.ending.as_ref().filter(|it| (it.key, it.incarnation) == (key, incarnation))
    }
}

/// How an incarnation ended.
#[derive(Debug)]
struct Ending {
    key: Key,
    incarnation: Incarnation,
    /// If anybody is told.
    reason: Option<Arc<ExitReason>>,
    /// How long it had been Active.
    lived: Option<Duration>,
}

/// Who is told of what happens in one turn: to find that out for each edge would cost more than
/// most edges do.
#[derive(Clone, Copy, Debug, Default)]
struct Audience {
    /// The log is read.
    reads: bool,
    /// Somebody has subscribed.
    listens: bool,
}

impl Audience {
    fn is_there(self) -> bool {
        self.reads || self.listens
    }
}

/// Who waits for an answer about a child.
#[derive(Debug)]
struct Caller {
    child: ChildName,
    call: &'static str,
    answer: Answer<Started>,
}

impl<M: Machine> Driver<M> {
    pub(super) fn new(machine: M, hub: Arc<Hub>, above: Option<Context>) -> Self {
        // Whoever is asked about failures is told how long the child had lived.
        let heeds_edges = hub.callback.is_some();
        let tasks = Tasks::new(Arc::clone(&hub) as _, &hub.blueprint);
        Self {
            machine,
            hub,
            tasks,
            last_turn: None,
            batch: Batch::default(),
            required: Few::default(),
            callers: Few::default(),
            next_ticket: 0,
            sleep: None,
            above,
            heard: StopLevel::None,
            asked: Few::default(),
            late: Queue::default(),
            answered: false,
            yields: false,
            overdue: 0,
            leaked: Few::default(),
            lived: Few::default(),
            given_up: None,
            fallbacks: Few::default(),
            audience: Audience::default(),
            heeds_edges,
            supervises: false,
            end: None,
            questions: Questions::default(),
            health: Health::default(),
            span: trace::boxed(Span::current()),
            panic: None,
        }
    }

    /// Not done by `new`: in a driver that is still to be moved to where it stays, each child took 40
    /// instructions more.
    fn take_children(&mut self) {
        let blueprint = Arc::clone(&self.hub.blueprint);
        let at = self.hub.began;
        self.machine.reserve(blueprint.children.len());
        for spec in &blueprint.children {
            self.add(spec, at);
        }
        for spec in blueprint.children.iter().filter(|spec| !spec.requires.is_empty()) {
            if let Some(key) = self.tasks.find(&spec.seed.name) {
                self.link(key, spec);
            }
        }
    }

    /// Whether the next deadline has come.
    fn is_due(&self, now: Instant) -> bool {
        self.machine.next_deadline().is_some_and(|at| at <= now)
    }

    fn turn(&mut self, now: Instant) {
        self.last_turn = Some(now);
        let due = self.is_due(now);
        let mut late = std::mem::take(&mut self.late);
        self.asked.clear();
        self.answered = false;
        // Before it is seen who listens: whoever has subscribed and then stops this hears of it.
        let level = self.above.as_ref().map_or(StopLevel::None, |ctx| ctx.run.level());
        self.audience =
            Audience { reads: trace::is_read(), listens: self.hub.tree.has_listeners() };
        // A supervisor below goes by its edges, too, once it has left mailboxes here, which it does
        // before its end comes in.
        let heeds_edges = self.heeds_edges || !self.hub.orphaned_mailboxes.is_empty();
        self.machine.mute(!self.audience.is_there() && !heeds_edges);
        // Stopping comes first, so that nothing is started only to be stopped at once.
        self.hear(level, now);
        let mut room = EVENTS;
        if due || !late.is_empty() {
            self.take_events(&mut room, now, |batch| batch.next_event());
        }
        while let Some((key, incarnation)) = late.pop_front() {
            if self.tasks.runs(key) == Some(incarnation) {
                self.abort(key);
            }
        }
        for _ in 0..REQUESTS {
            self.take_events(&mut room, now, |batch| batch.next_event_in_order());
            let Some(request) = self.batch.next_request() else { break };
            self.serve(request, now);
            // What has come since is for the next turn: who was answered may be on this worker, and
            // not before the end of this one.
            if self.batch.requests.is_empty() {
                break;
            }
        }
        // Nor does an event wait for more requests than these.
        self.take_events(&mut room, now, |batch| batch.next_event());
        // An end that has come in already is heard before a deadline for it is missed, unless ends
        // never cease to come.
        if due && (self.batch.events.is_empty() || self.overdue == PATIENCE) {
            self.overdue = 0;
            self.step(Event::Tick, now);
        } else if due {
            self.overdue += 1;
        }
        if self.machine.stops_now().is_none() {
            self.hub.line.cut();
        }
    }

    fn take_events(
        &mut self,
        room: &mut usize,
        now: Instant,
        next: impl Fn(&mut Batch<Request>) -> Option<Event>,
    ) {
        while *room > 0
            && let Some(event) = next(&mut self.batch)
        {
            *room -= 1;
            self.take_in(event, now);
        }
    }

    /// Looks whether the supervisor is to stop.
    fn hear(&mut self, level: StopLevel, now: Instant) {
        if let Some(stop) = self.batch.stop.take() {
            trace::stopping(&self.hub, &stop.reason);
            self.step(Event::Stop { within: stop.within }, now);
        }
        if level > self.heard {
            self.heard = level;
            match level {
                StopLevel::None => {}
                StopLevel::Cancel => {
                    trace::stopping(&self.hub, "asked by its supervisor");
                    self.step(Event::Stop { within: None }, now);
                }
                StopLevel::Abort => self.step(Event::AbortAll, now),
            }
        }
    }

    fn take_in(&mut self, event: Event, now: Instant) {
        // Dropped when the next incarnation has been started.
        let mut _ended = None;
        let mut over = match event {
            // By its final message, a child that waits for its restart has none to wait for.
            Event::Answered { key, .. } | Event::Request { key, .. } => Some(key),
            _ => None,
        };
        if let Event::Exited { key, incarnation, .. } | Event::Ignored { key, incarnation } = event
        {
            over = Some(key);
            _ended = self.tasks.ended(key, incarnation);
            if !self.leaked.is_empty() && self.leaked.remove(&(key, incarnation)).is_some() {
                self.hub.leak_ended(key, incarnation);
            }
        }
        self.step(event, now);
        if let Some(key) = over {
            self.let_go(key);
        }
    }

    /// Lets the task go that waits for another run of a child that does not come back.
    fn let_go(&mut self, key: Key) {
        if self.tasks.rests(key) && !self.machine.returns(key) {
            self.tasks.let_go(key);
        }
    }

    fn step(&mut self, event: Event, now: Instant) {
        self.step_for(&mut None, event, now);
    }

    /// For who asks; he is there no more if he was answered.
    fn step_for(&mut self, asking: &mut Option<(Ticket, Caller)>, event: Event, now: Instant) {
        // Without it, as when the thread is about to end, this step has room of its own.
        let mut effects = EFFECTS.try_with(Cell::take).unwrap_or_default();
        self.machine.on_event(event, now, &mut effects);
        let mut step = Step { now, ending: None, asking, down: Vec::new() };
        for effect in &mut effects {
            self.perform(effect, &mut step);
        }
        // One that has failed and is still there is decided on when it is gone.
        if let Some(ending) = &step.ending
            && self.tasks.runs(ending.key) == Some(ending.incarnation)
        {
            self.remember_life(ending);
        }
        effects.clear();
        let _ = EFFECTS.try_with(|room| room.set(effects));
        self.settle_mailboxes(&step.down, now);
    }

    /// What becomes of who has ended so is decided later, and that is logged.
    fn remember_life(&mut self, ending: &Ending) {
        if let Some(lived) = ending.lived {
            self.lived.insert(ending.key, (ending.incarnation, lived));
        }
    }

    fn add(&mut self, spec: &ChildSpec, now: Instant) -> Key {
        let key = self.machine.add(Arc::clone(&spec.options), now);
        let mailbox = spec.seed.mailbox();
        self.tasks.add(key, Arc::clone(&spec.seed), mailbox.is_some());
        if let Some(fallback) = &spec.fallback {
            self.fallbacks.insert(key, Arc::clone(fallback));
        }
        self.health.add(key, spec.health.as_ref());
        self.supervises |= spec.options.supervisor.is_some();
        // What may take its place may have any of these.
        if mailbox.is_some() || spec.health.is_some() || spec.fallback.is_some() {
            self.heeds_edges = true;
            self.machine.mute(false);
        }
        if let Some(mailbox) = mailbox {
            self.bind_mailbox(key, spec, &mailbox);
        }
        key
    }

    fn link(&mut self, key: Key, spec: &ChildSpec) {
        let provides = self.required.get(&spec.seed.name).copied();
        let mut requires = Vec::with_capacity(spec.requires.len());
        for name in &spec.requires {
            if let Some(provider) = self.tasks.find(name) {
                let id = self.machine.provided_by(provider);
                self.required.insert(name.as_str().into(), id);
                requires.push(id);
            }
        }
        if provides.is_some() || !requires.is_empty() {
            self.machine.link(key, provides, requires);
        }
    }

    /// Names those that were to be aborted and are still there. Otherwise nobody would: whoever
    /// waited for this supervisor waits no longer. What a supervisor leaves behind it says itself.
    fn leave_behind(&mut self) {
        for (key, incarnation) in self.tasks.running() {
            let options = self.machine.options(key);
            let worker = options.is_some_and(|options| options.supervisor.is_none());
            if worker && self.leaked.insert((key, incarnation), ()).is_none() {
                self.hub.leaked(now(), self.tasks.path(&self.hub, key), key, incarnation);
            }
        }
    }

    /// What has come in and is not taken in any more.
    fn hear_late(&mut self) {
        while let Some(event) = self.batch.events.pop_front() {
            self.hub.hear_late(event);
        }
    }

    fn finish(&mut self, end: End) -> End {
        trace::ended(&self.hub);
        self.hear_late();
        end.leaving(self.hub.left_behind())
    }
}

impl<M: Machine> Drop for Driver<M> {
    fn drop(&mut self) {
        if self.heard == StopLevel::Abort {
            self.leave_behind();
        }
        self.tasks.abort_everything();
        // It holds children, and they this supervisor.
        self.hub.line.cut();
        self.hand_over_mailboxes(now());
        self.hear_late();
    }
}
