//! A world around a machine, without tasks and without time that passes by itself.
//!
//! Its children do what their [`Kid`] says. Time jumps from one deadline to the next. Whatever the
//! machine does is carried out as the driver would, and compared with what the module promises:
//! every test checks every invariant at every event, whatever else it is about.
//!
//! What happened can be read as text: [`World::acts`] for what was done, [`World::timed`] for when,
//! [`World::story`] for the way of one child through its lifecycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::children::Children;
use super::state::{Down, State, Timer, Why};
use super::{
    Answer, Decision, Dynamic, Effect, Event, Finish, Incarnation, Key, Machine, Ordered, Report,
    Request, RequirementId, SLICE, Ticket,
};
use crate::exit::{ExitError, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{Backoff, ChildOptions, OnLeak, RestartType, Rules, Shutdown};

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// What one incarnation does when it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    Run,
    /// Returns an error, or ends in another way, at the time when it should be ready.
    Fail,
    Panic,
    Ignore,
    End,
    Escalate,
}

impl Play {
    fn reason(self) -> ExitReason {
        match self {
            Self::Run | Self::Ignore | Self::End => ExitReason::Normal,
            Self::Fail => ExitReason::Failed(ExitError::from("no")),
            Self::Panic => ExitReason::Panicked("oh".to_owned()),
            Self::Escalate => {
                ExitReason::Escalated { child: Path::root("x"), source: Arc::new(ExitReason::Hung) }
            }
        }
    }
}

/// A child and how it behaves.
#[derive(Clone, Debug)]
pub(super) struct Kid {
    name: String,
    options: ChildOptions,
    requires: Vec<String>,
    /// How long it takes to be ready. `None`: for ever.
    pub(super) ready: Option<Duration>,
    /// How long it takes to end when it is asked to. `None`: it is deaf.
    pub(super) stops: Option<Duration>,
    /// How long it takes to end when it is aborted. `None`: it leaks.
    pub(super) dies: Option<Duration>,
    /// What the next incarnations do. Those after them run.
    pub(super) plays: VecDeque<Play>,
}

/// A child that is active at once, runs until it is asked to end and then ends at once.
pub(super) fn kid(name: &str) -> Kid {
    Kid {
        name: name.to_owned(),
        options: ChildOptions::default(),
        requires: Vec::new(),
        ready: Some(Duration::ZERO),
        stops: Some(Duration::ZERO),
        dies: Some(Duration::ZERO),
        plays: VecDeque::new(),
    }
}

impl Kid {
    pub(super) fn restart(mut self, restart: RestartType) -> Self {
        self.options.restart = Some(restart);
        self
    }

    pub(super) fn transient(self) -> Self {
        self.restart(RestartType::Transient)
    }

    pub(super) fn temporary(self) -> Self {
        self.restart(RestartType::Temporary)
    }

    pub(super) fn significant(mut self) -> Self {
        self.options.significant = true;
        self
    }

    pub(super) fn requires(mut self, name: &str) -> Self {
        self.requires.push(name.to_owned());
        self
    }

    pub(super) fn shutdown(mut self, shutdown: impl Into<Shutdown>) -> Self {
        self.options.shutdown = Some(shutdown.into());
        self
    }

    pub(super) fn backoff(mut self, backoff: Backoff) -> Self {
        self.options.backoff = Some(backoff);
        self
    }

    pub(super) fn on_leak(mut self, on_leak: OnLeak) -> Self {
        self.options.on_leak = Some(on_leak);
        self
    }

    pub(super) fn activation_timeout(mut self, timeout: Duration) -> Self {
        self.options.activation_timeout = Some(timeout);
        self
    }

    /// Says itself when it is ready: after so long, or never.
    pub(super) fn signals(mut self, ready: impl Into<Option<Duration>>) -> Self {
        self.options.signals = true;
        self.ready = ready.into();
        self
    }

    /// Ends so long after it was asked to, or never.
    pub(super) fn stops(mut self, stops: impl Into<Option<Duration>>) -> Self {
        self.stops = stops.into();
        self
    }

    /// Ends so long after it was aborted.
    pub(super) fn dies(mut self, dies: Duration) -> Self {
        self.dies = Some(dies);
        self
    }

    /// Is not heard of again once it is aborted.
    pub(super) fn leaks(mut self) -> Self {
        self.stops = None;
        self.dies = None;
        self
    }

    /// Requires nobody and is not significant: a child of a dynamic supervisor.
    pub(super) fn alone(mut self) -> Self {
        self.requires.clear();
        self.options.significant = false;
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn plays(mut self, plays: impl IntoIterator<Item = Play>) -> Self {
        self.plays.extend(plays);
        self
    }
}

#[derive(Debug)]
struct Actor {
    kid: Kid,
    lifecycle: Lifecycle,
    since: Instant,
    incarnation: Incarnation,
    live: bool,
    cancelled: bool,
    aborted: bool,
    forgotten: bool,
}

#[derive(Clone, Debug)]
enum Happening {
    Ready,
    Ignored,
    Exited(ExitReason),
}

/// What a line of the transcript is about.
#[derive(Debug)]
enum Line {
    Act,
    Cause,
    Edge(Key),
    Other,
}

/// A machine that can be looked into.
pub(super) trait Subject: Machine {
    fn children(&self) -> &Children;
}

impl Subject for Ordered {
    fn children(&self) -> &Children {
        &self.children
    }
}

impl Subject for Dynamic {
    fn children(&self) -> &Children {
        &self.children
    }
}

/// See the [module](self).
pub(super) struct World<M> {
    pub(super) machine: M,
    pub(super) now: Instant,
    began: Instant,
    actors: BTreeMap<Key, Actor>,
    names: BTreeMap<String, Key>,
    provided: BTreeMap<String, RequirementId>,
    agenda: BTreeMap<(Instant, u64), (Key, Incarnation, Happening)>,
    serial: u64,
    transcript: Vec<(Instant, Line, String)>,
    read: usize,
    told: BTreeMap<Key, usize>,
    waiting: BTreeMap<Ticket, Key>,
    answers: BTreeMap<Ticket, String>,
    tickets: Ticket,
    ticks: usize,
    up: bool,
    finished: Option<Instant>,
    /// The incarnation that ended last.
    ended: Option<(Key, Incarnation)>,
}

/// Rules without backoff, as OTP has them, and without a limit.
pub(super) fn rules() -> Rules {
    Rules { backoff: Backoff::none(), max_restarts: None, ..Rules::default() }
}

impl World<Ordered> {
    /// A supervisor with these children, that has not begun.
    pub(super) fn ordered(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> Self {
        let now = Instant::now();
        let mut world = Self::around(Ordered::new(rules, now, 7), now);
        let keys: Vec<_> = kids.into_iter().map(|kid| world.insert(kid)).collect();
        for key in keys {
            world.link(key);
        }
        world
    }

    /// A supervisor with these children, all of which have started.
    pub(super) fn running(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> Self {
        let mut world = Self::ordered(rules, kids);
        world.advance(Duration::ZERO);
        assert!(world.up, "{}", world.tail());
        world.skip();
        world
    }

    /// Children named by letters, all of which have started.
    pub(super) fn named(rules: Rules, names: &str) -> Self {
        Self::running(rules, names.split(' ').map(kid))
    }
}

impl World<Dynamic> {
    pub(super) fn dynamic(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> Self {
        let now = Instant::now();
        let mut world = Self::around(Dynamic::new(rules, now, 7), now);
        world.settle();
        for kid in kids {
            world.add(kid);
        }
        world.settle();
        world.skip();
        world
    }
}

impl<M: Subject> World<M> {
    fn around(machine: M, now: Instant) -> Self {
        Self {
            machine,
            now,
            began: now,
            actors: BTreeMap::new(),
            names: BTreeMap::new(),
            provided: BTreeMap::new(),
            agenda: BTreeMap::new(),
            serial: 0,
            transcript: Vec::new(),
            read: 0,
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            answers: BTreeMap::new(),
            tickets: 0,
            ticks: 0,
            up: false,
            finished: None,
            ended: None,
        }
    }

    fn insert(&mut self, mut kid: Kid) -> Key {
        // Whoever requires a name that there has never been is refused before he gets here.
        kid.requires.retain(|name| self.names.contains_key(name));
        let key = self.machine.add(Arc::new(kid.options.clone()), self.now);
        self.names.insert(kid.name.clone(), key);
        let actor = Actor {
            kid,
            lifecycle: Lifecycle::Discovered,
            since: self.now,
            incarnation: 0,
            live: false,
            cancelled: false,
            aborted: false,
            forgotten: false,
        };
        assert!(self.actors.insert(key, actor).is_none(), "a key is given once");
        key
    }

    fn link(&mut self, key: Key) {
        let kid = &self.actors[&key].kid;
        let provides = self.provided.get(&kid.name).copied();
        let requires = kid.requires.clone();
        if provides.is_none() && requires.is_empty() {
            return;
        }
        let ids = requires.into_iter().map(|name| {
            let id = self.provided.get(&name).copied();
            id.unwrap_or_else(|| {
                let id = self.machine.provided_by(self.names[&name]);
                self.provided.insert(name, id);
                id
            })
        });
        let ids = ids.collect();
        self.machine.link(key, provides, ids);
    }

    /// Adds a child and asks for its start, as `start_child` does.
    pub(super) fn add(&mut self, kid: Kid) -> Ticket {
        let name = kid.name.clone();
        let admitted = self.machine.admits();
        assert!(admitted.is_ok(), "{admitted:?}");
        let key = self.insert(kid);
        self.link(key);
        self.ask(&name, Request::Start)
    }

    pub(super) fn key(&self, name: &str) -> Key {
        self.names[name]
    }

    pub(super) fn kid(&mut self, name: &str) -> &mut Kid {
        let key = self.key(name);
        &mut self.actors.get_mut(&key).expect("a child").kid
    }

    /// Every child does from now on what it should.
    pub(super) fn heal(&mut self) {
        let keys: Vec<_> = self.actors.keys().copied().collect();
        for key in keys {
            let actor = self.actors.get_mut(&key).expect("a child");
            let kid = &mut actor.kid;
            kid.plays.clear();
            (kid.ready, kid.stops, kid.dies) = (Some(ms(1)), Some(ms(1)), Some(ms(1)));
            let (live, asked) = (actor.live, actor.cancelled || actor.aborted);
            let incarnation = actor.incarnation;
            if live && asked {
                self.plan(ms(1), key, incarnation, Happening::Exited(ExitReason::Shutdown));
            } else if live && actor.lifecycle == Lifecycle::Activating {
                self.plan(ms(1), key, incarnation, Happening::Ready);
            }
        }
    }

    // What happens.

    /// The child's task ends now.
    pub(super) fn exit(&mut self, name: &str, reason: ExitReason) {
        self.happen(self.key(name), Happening::Exited(reason));
    }

    pub(super) fn crash(&mut self, name: &str) {
        self.exit(name, Play::Fail.reason());
    }

    /// The child fails, and all that follows at once has followed.
    pub(super) fn fail(&mut self, name: &str) {
        self.crash(name);
        self.settle();
    }

    pub(super) fn end(&mut self, name: &str) {
        self.exit(name, ExitReason::Normal);
        self.settle();
    }

    pub(super) fn ready(&mut self, name: &str) {
        self.happen(self.key(name), Happening::Ready);
        self.settle();
    }

    pub(super) fn stop(&mut self) {
        self.event(Event::Stop { within: None });
        self.settle();
    }

    fn happen(&mut self, key: Key, happening: Happening) {
        let incarnation = self.actors[&key].incarnation;
        self.deliver(key, incarnation, happening);
    }

    fn deliver(&mut self, key: Key, incarnation: Incarnation, happening: Happening) {
        let actor = self.actors.get_mut(&key).expect("a child");
        if actor.live && actor.incarnation == incarnation {
            let event = match happening {
                Happening::Ready => Event::Ready { key, incarnation },
                Happening::Ignored => {
                    actor.live = false;
                    self.ended = Some((key, incarnation));
                    Event::Ignored { key, incarnation }
                }
                Happening::Exited(reason) => {
                    actor.live = false;
                    self.ended = Some((key, incarnation));
                    Event::Exited { key, incarnation, reason }
                }
            };
            self.event(event);
        }
    }

    /// Somebody asks for something.
    pub(super) fn ask(&mut self, name: &str, request: Request) -> Ticket {
        self.ask_for(self.key(name), request)
    }

    pub(super) fn ask_for(&mut self, key: Key, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        self.waiting.insert(ticket, key);
        self.event(Event::Request { ticket, key, request });
        ticket
    }

    /// Asks, lets all that follows at once follow, and returns the answer.
    pub(super) fn call(&mut self, name: &str, request: Request) -> &str {
        let ticket = self.ask(name, request);
        self.settle();
        self.answer(ticket)
    }

    /// The answer to a question, or a dash while there is none.
    pub(super) fn answer(&self, ticket: Ticket) -> &str {
        self.answers.get(&ticket).map_or("-", String::as_str)
    }

    pub(super) fn event(&mut self, event: Event) {
        let ending = matches!(event, Event::Stop { .. } | Event::AbortAll);
        let ending = ending || self.is_ending();
        self.ticks += usize::from(matches!(event, Event::Tick));
        let what = format!("{event:?}");
        self.transcript.push((self.now, Line::Other, format!("← {what}")));
        let mut effects = Vec::new();
        self.machine.on_event(event, self.now, &mut effects);

        let visited: BTreeSet<_> = effects.iter().filter_map(subject).collect();
        self.check(visited.len() <= 2 * SLICE + 2, "an event visits few children");
        for effect in effects {
            self.carry_out(effect, ending);
        }
        self.check_counts();
        self.echo();
    }

    /// An incarnation that is over says all that it could say.
    fn echo(&mut self) {
        let Some((key, incarnation)) = self.ended else { return };
        let before = self.machine.next_deadline();
        let reason = ExitReason::Hung;
        let mut effects = Vec::new();
        for event in [
            Event::Ready { key, incarnation },
            Event::Ignored { key, incarnation },
            Event::Healthy { key, incarnation },
            Event::StopSelf { key, incarnation },
            Event::Exited { key, incarnation, reason },
        ] {
            self.machine.on_event(event, self.now, &mut effects);
        }
        self.check(effects.is_empty(), "what an incarnation says that is over has no effect");
        let after = self.machine.next_deadline();
        self.check(before == after, "what an incarnation says that is over moves no deadline");
    }

    // What the machine wants.

    fn carry_out(&mut self, effect: Effect, ending: bool) {
        self.check(self.finished.is_none(), format!("{effect:?} came after the end"));
        match effect {
            Effect::Start { key, incarnation, cause } => {
                let actor = &self.actors[&key];
                let next = actor.incarnation + 1;
                let ready = actor.lifecycle == Lifecycle::Activating;
                self.check(!ending, "nothing is started once the end has begun");
                self.check(!actor.live, "a child has one live incarnation");
                self.check(incarnation == next, "incarnations are counted");
                self.check(ready, "what is started is activating");
                let name = format!("{}#{incarnation}", actor.kid.name);
                self.transcript.push((self.now, Line::Cause, format!("{name} {cause}")));
                self.act(format!("start {name}"));
                self.play(key, incarnation);
            }
            Effect::Cancel { key } => {
                let actor = self.actors.get_mut(&key).expect("a child");
                let once = actor.live && !std::mem::replace(&mut actor.cancelled, true);
                let (stops, incarnation) = (actor.kid.stops, actor.incarnation);
                let line = format!("cancel {}", actor.kid.name);
                self.act(line);
                self.check(once, "a live child is asked once");
                if let Some(after) = stops {
                    self.plan(after, key, incarnation, Happening::Exited(ExitReason::Shutdown));
                }
            }
            Effect::Abort { key } => {
                let actor = self.actors.get_mut(&key).expect("a child");
                let once = actor.live && !std::mem::replace(&mut actor.aborted, true);
                let (dies, incarnation) = (actor.kid.dies, actor.incarnation);
                let line = format!("abort {}", actor.kid.name);
                self.act(line);
                self.check(once, "a live child is aborted once");
                if let Some(after) = dies {
                    self.plan(after, key, incarnation, Happening::Exited(ExitReason::Aborted));
                }
            }
            Effect::Leaked { key, incarnation } => {
                let actor = self.actors.get_mut(&key).expect("a child");
                let right = actor.live && actor.aborted && actor.incarnation == incarnation;
                actor.live = false;
                let line = format!("leaked {}#{incarnation}", actor.kid.name);
                self.act(line);
                self.check(right, "only what was aborted and is still there has leaked");
                self.ended = Some((key, incarnation));
            }
            Effect::Decided { key, decision: Decision::GiveUp, .. } => {
                let line = format!("gave up {}", self.actors[&key].kid.name);
                self.act(line);
            }
            Effect::Decided { .. } | Effect::Ended { .. } => {}
            Effect::Removed { key, .. } => {
                let actor = self.actors.get_mut(&key).expect("a child");
                let gone = !actor.live && actor.lifecycle == Lifecycle::Stopped;
                let first = !std::mem::replace(&mut actor.forgotten, true);
                let line = format!("removed {}", actor.kid.name);
                self.act(line);
                self.check(gone && first, "a child is forgotten once, and from Stopped");
                let answered = self.waiting.values().all(|&other| other != key);
                // The one who asked for it is answered next.
                let asked = self.waiting.get(&self.tickets) == Some(&key);
                self.check(answered || asked, "nobody waits for a child that is gone");
            }
            Effect::Report(report) => self.report(report),
            Effect::Reply { ticket, answer } => {
                let waited = self.waiting.remove(&ticket).is_some();
                let answer = word(&answer);
                let line = format!("reply {ticket}: {answer}");
                self.transcript.push((self.now, Line::Other, line));
                self.answers.insert(ticket, answer);
                self.check(waited, "a ticket is answered once");
            }
            Effect::Up => {
                let first = !std::mem::replace(&mut self.up, true);
                self.act("up".to_owned());
                self.check(first, "it comes up once");
            }
            Effect::Finish(finish) => {
                let line = self.last_word(&finish);
                self.act(line);
                self.finished = Some(self.now);
                let live = self.actors.values().any(|actor| actor.live);
                self.check(!live, "no child is live at the end");
                let left = |actor: &&Actor| !actor.forgotten;
                let mut left = self.actors.values().filter(left);
                let stopped = left.all(|actor| actor.lifecycle == Lifecycle::Stopped);
                self.check(stopped, "all children are Stopped at the end");
                self.check(self.waiting.is_empty(), "nobody waits at the end");
            }
        }
    }

    fn play(&mut self, key: Key, incarnation: Incarnation) {
        let actor = self.actors.get_mut(&key).expect("a child");
        actor.incarnation = incarnation;
        (actor.live, actor.cancelled, actor.aborted) = (true, false, false);
        let play = actor.kid.plays.pop_front().unwrap_or(Play::Run);
        let Some(after) = actor.kid.ready else { return };
        let happening = match play {
            Play::Run if !actor.kid.options.signals => return,
            Play::Run => Happening::Ready,
            Play::Ignore => Happening::Ignored,
            other => Happening::Exited(other.reason()),
        };
        self.plan(after, key, incarnation, happening);
    }

    fn plan(&mut self, after: Duration, key: Key, incarnation: Incarnation, what: Happening) {
        self.serial += 1;
        self.agenda.insert((self.now + after, self.serial), (key, incarnation, what));
    }

    fn report(&mut self, report: Report) {
        let Report { key, incarnation, from, to, after, ending } = report;
        let now = self.now;
        let actor = self.actors.get_mut(&key).expect("a child");
        let was = std::mem::replace(&mut actor.lifecycle, to);
        let since = std::mem::replace(&mut actor.since, now);
        let expected =
            if to == Lifecycle::Activating { actor.incarnation + 1 } else { actor.incarnation };
        let ending = ending.map(|ending| format!(" ({ending})")).unwrap_or_default();
        let line = format!("{}: {from} → {to}{ending}", actor.kid.name);
        self.transcript.push((now, Line::Edge(key), line));
        self.check(from.can_become(to), "an edge is legal");
        self.check(from == was, "an edge begins where the last one ended");
        self.check(after == now - since, "an edge says how long it took to come");
        self.check(incarnation == expected, "an edge names the incarnation");
    }

    fn last_word(&self, finish: &Finish) -> String {
        let name = |key: &Key| &self.actors[key].kid.name;
        match finish {
            Finish::Stopped => "finish stopped".to_owned(),
            Finish::Aborted => "finish aborted".to_owned(),
            Finish::AutoShutdown => "finish auto".to_owned(),
            Finish::Escalated { key, reason } => {
                format!("finish escalated {}: {}", name(key), reason.kind())
            }
            Finish::StartFailed { key, reason } => {
                format!("finish start failed {}: {}", name(key), reason.kind())
            }
        }
    }

    // What must be true whenever an event has been taken in.

    fn check_counts(&self) {
        let children = self.machine.children();
        let mut by_lifecycle = [0; 8];
        let (mut live, mut left, mut leaving, mut running) = (0, 0, 0, 0);
        for (&key, actor) in self.actors.iter().filter(|(_, actor)| !actor.forgotten) {
            let name = &actor.kid.name;
            let state = children.state(key).expect("a child that was not forgotten");
            let view = self.machine.view(key).expect("a child that was not forgotten");
            by_lifecycle[actor.lifecycle as usize] += 1;
            running += u32::from(actor.live);
            let is_live =
                matches!(state, State::Activating | State::Active | State::Stopping { .. });
            live += u32::from(is_live);
            let significant = actor.kid.options.significant;
            left += u32::from(significant && will_run(state));
            leaving += u32::from(significant && is_leaving(state));

            self.check(view.lifecycle == actor.lifecycle, "the view is what was reported");
            self.check(view.incarnation == actor.incarnation, "the view has the incarnation");
            let at = children.timers.at(Timer::Child(key));
            let idle =
                matches!(state, State::Down(_) | State::Gated(_) | State::Active | State::Awaiting);
            self.check(!idle || at.is_none(), format!("{name}: {state:?} has no timer"));
            let aborted = matches!(state, State::Stopping { aborted: true, .. });
            self.check(!aborted || at.is_some(), format!("{name}: an abort is timed"));
            let waits = matches!(state, State::Backoff | State::Awaiting);
            let due = view.history.is_some_and(|history| history.next.is_some());
            self.check(due == waits, format!("{name}: {state:?}, next attempt: {due}"));
            self.check_requirements(key, actor, state);
        }
        self.check(live == children.live && live == running, "live children are counted");
        self.check(left == children.significant_left, "significant children are counted");
        self.check(leaving == children.significant_leaving, "those that leave are counted");
        let census = self.machine.census();
        self.check(census.by_lifecycle == by_lifecycle, "children are counted by lifecycle");
    }

    fn check_requirements(&self, key: Key, actor: &Actor, state: State) {
        let children = self.machine.children();
        for name in &actor.kid.requires {
            let provider = self.names[name];
            let Some(provider) = children.state(provider) else { return };
            let met = matches!(provider, State::Active | State::Down(Down::Finished));
            let lacks = children.requirements.lacks(key);
            if !met {
                self.check(lacks.is_some(), "a requirement is met by one who is there");
                self.check(state != State::Activating || actor.live, "it may run on");
            }
        }
    }

    fn check(&self, right: bool, what: impl Display) {
        assert!(right, "broken: {what}\n{}", self.tail());
    }

    fn is_ending(&self) -> bool {
        matches!(self.machine.admits(), Err(Answer::ShuttingDown))
    }

    // Time.

    /// Lets everything happen that happens now.
    pub(super) fn settle(&mut self) {
        let mut events = 0;
        while self.finished.is_none() {
            let due = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now);
            if let Some(entry) = due {
                let (key, incarnation, happening) = entry.remove();
                self.deliver(key, incarnation, happening);
            } else if self.machine.next_deadline().is_some_and(|at| at <= self.now) {
                self.event(Event::Tick);
            } else {
                return;
            }
            events += 1;
            self.check(events < 1_000 + 16 * self.actors.len(), "no instant lasts for ever");
        }
    }

    /// Lets time pass, from one deadline to the next.
    pub(super) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        self.settle();
        while let Some(next) = self.next_instant().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
    }

    /// Lets time pass until nothing more is due, but not for longer than this. Returns how long it
    /// took, or nothing if it was not enough.
    pub(super) fn until_idle(&mut self, limit: Duration) -> Option<Duration> {
        let begin = self.now;
        self.settle();
        while let Some(next) = self.next_instant() {
            if next > begin + limit {
                return None;
            }
            self.now = self.now.max(next);
            self.settle();
        }
        Some(self.now - begin)
    }

    fn next_instant(&self) -> Option<Instant> {
        if self.finished.is_some() {
            return None;
        }
        let planned = self.agenda.first_key_value().map(|(&(at, _), _)| at);
        planned.into_iter().chain(self.machine.next_deadline()).min()
    }

    // What can be seen.

    /// How often the machine had itself woken.
    pub(super) fn ticks(&self) -> usize {
        self.ticks
    }

    pub(super) fn finished(&self) -> bool {
        self.finished.is_some()
    }

    /// The children about which somebody waits for an answer.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Key> {
        self.waiting.values().copied()
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// The names of all children that there are, in order of their keys.
    pub(super) fn present(&self) -> Vec<(String, Key)> {
        let present = self.actors.iter().filter(|(_, actor)| !actor.forgotten);
        present.map(|(&key, actor)| (actor.kid.name.clone(), key)).collect()
    }

    pub(super) fn lifecycle(&self, name: &str) -> Lifecycle {
        self.actors[&self.key(name)].lifecycle
    }

    /// Why the child is in the state in which it is.
    pub(super) fn why(&self, name: &str) -> Option<&'static str> {
        self.machine.view(self.key(name)).and_then(|view| view.why)
    }

    pub(super) fn state(&self, key: Key) -> Option<State> {
        self.machine.children().state(key)
    }

    pub(super) fn live(&self, key: Key) -> Option<Incarnation> {
        let actor = &self.actors[&key];
        actor.live.then_some(actor.incarnation)
    }

    /// The incarnations that are live, as in `a#1 b#2`.
    pub(super) fn alive(&self) -> String {
        let live = self.actors.values().filter(|actor| actor.live);
        let names = live.map(|actor| format!("{}#{}", actor.kid.name, actor.incarnation));
        names.collect::<Vec<_>>().join(" ")
    }

    /// What was done since the last time, as in `cancel b, start a#2`.
    pub(super) fn acts(&mut self) -> String {
        let acts = self.news().into_iter().map(|(_, act)| act);
        acts.collect::<Vec<_>>().join(", ")
    }

    /// What was done since the last time, and when it was, counted from the beginning.
    pub(super) fn timed(&mut self) -> String {
        let began = self.began;
        let acts = self.news().into_iter().map(|(at, act)| format!("{:?} {act}", at - began));
        acts.collect::<Vec<_>>().join(", ")
    }

    /// The edges of one child since the last time, as in `active → errored (failed) → resolved`.
    pub(super) fn story(&mut self, name: &str) -> String {
        let key = self.key(name);
        let from = self.told.insert(key, self.transcript.len()).unwrap_or(0);
        let mut story = String::new();
        for (_, line, text) in &self.transcript[from..] {
            if matches!(line, Line::Edge(of) if *of == key) {
                let (_, edge) = text.split_once(": ").expect("a name and an edge");
                let (from, to) = edge.split_once(" → ").expect("an edge");
                if story.is_empty() {
                    story.push_str(from);
                }
                story.push_str(" → ");
                story.push_str(to);
            }
        }
        story
    }

    /// Why incarnations were started since the last time, as in `a#1 initial, b#2 restart`.
    pub(super) fn causes(&mut self) -> String {
        let from = std::mem::replace(&mut self.read, self.transcript.len());
        let lines = self.transcript[from..].iter();
        let causes = lines.filter(|(_, line, _)| matches!(line, Line::Cause));
        causes.map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Makes the next look begin here.
    pub(super) fn skip(&mut self) {
        self.read = self.transcript.len();
        let keys: Vec<_> = self.actors.keys().copied().collect();
        self.told = keys.into_iter().map(|key| (key, self.read)).collect();
    }

    fn news(&mut self) -> Vec<(Instant, String)> {
        let from = std::mem::replace(&mut self.read, self.transcript.len());
        let lines = self.transcript[from..].iter();
        let acts = lines.filter(|(_, line, _)| matches!(line, Line::Act));
        acts.map(|(at, _, text)| (*at, text.clone())).collect()
    }

    fn act(&mut self, text: String) {
        self.transcript.push((self.now, Line::Act, text));
    }

    /// The end of the transcript, to be read when something went wrong.
    fn tail(&self) -> String {
        let from = self.transcript.len().saturating_sub(60);
        let lines = self.transcript[from..].iter();
        let lines = lines.map(|(at, _, text)| format!("{:?} {text}", *at - self.began));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn subject(effect: &Effect) -> Option<Key> {
    match effect {
        Effect::Start { key, .. }
        | Effect::Cancel { key }
        | Effect::Abort { key }
        | Effect::Leaked { key, .. }
        | Effect::Ended { key, .. }
        | Effect::Decided { key, .. }
        | Effect::Removed { key, .. }
        | Effect::Report(Report { key, .. }) => Some(*key),
        Effect::Reply { .. } | Effect::Up | Effect::Finish(_) => None,
    }
}

/// Whether a child in this state runs or will run again.
fn will_run(state: State) -> bool {
    match state {
        State::Down(down) => matches!(down, Down::New | Down::ByGroup),
        State::Gated(_)
        | State::Activating
        | State::Active
        | State::Backoff
        | State::Awaiting
        | State::Stopping { .. } => true,
    }
}

fn is_leaving(state: State) -> bool {
    match state {
        State::Stopping { why: Why::ByHand, .. } => true,
        State::Stopping { why: Why::Failing { by_hand, .. }, .. } => by_hand,
        _ => false,
    }
}

fn word(answer: &Answer) -> String {
    match answer {
        Answer::Done => "done".to_owned(),
        Answer::Started(incarnation) => format!("started {incarnation}"),
        Answer::Ignored => "ignored".to_owned(),
        Answer::Gated => "gated".to_owned(),
        Answer::Failed(reason) => format!("failed {}", reason.kind()),
        Answer::Running => "running".to_owned(),
        Answer::Restarting => "restarting".to_owned(),
        Answer::Unfit(lifecycle) => format!("unfit {lifecycle}"),
        Answer::NotFound => "not found".to_owned(),
        Answer::ShuttingDown => "shutting down".to_owned(),
        Answer::MaxChildren(max) => format!("max {max}"),
        Answer::Stopped => "stopped".to_owned(),
    }
}
