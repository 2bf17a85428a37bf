//! A world around a machine, without tasks and without time that passes by itself.
//!
//! Its children do what their [`Kid`] says. Time jumps from one deadline to the next. Whatever the
//! machine does is carried out as the driver would, and a [`Witness`] compares it with what is
//! promised: every test checks every invariant at every event, whatever else it is about.
//!
//! What happened can be read as text: [`World::acts`] for what was done, [`World::timed`] for when,
//! [`World::story`] for the way of one child through its lifecycle.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::State;
use super::witness::{Nature, Witness};
use super::{
    ChildAnswer, ChildRequest, Decision, Effect, Finish, IncarnationNumber, Key, Machine,
    MachineEvent, Report, RequirementId, Ticket,
};
use crate::exit::{ExitError, ExitKind, ExitReason};
use crate::failure::{FailureDecision, Resolution};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{
    Backoff, ChildOptions, Exceptions, Intensity, OnExhausted, OnExit, OnLeak, RestartPolicy,
    RestartType, Rules, Shutdown, Trigger, WrittenLimits,
};

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
    /// Returns the error that asks for a wait, if it is [told](Kid::told).
    Busy,
    Panic,
    Ignore,
    End,
    Escalate,
    /// Ends the program, as a supervisor would.
    Exit,
}

/// An error that children can be asked about.
#[derive(Debug, thiserror::Error)]
#[error("busy")]
pub(super) struct Busy;

impl Play {
    pub(super) fn reason(self) -> ExitReason {
        match self {
            Self::Run | Self::Ignore | Self::End => ExitReason::Normal,
            Self::Fail => ExitReason::Failed(ExitError::from("no")),
            Self::Busy => ExitReason::Failed(ExitError::from(Busy)),
            Self::Panic => ExitReason::Panicked("oh".to_owned()),
            Self::Exit => ExitReason::Exit {
                code: 3,
                child: Path::root("x"),
                source: Arc::new(ExitReason::Hung),
            },
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
    pub(super) options: ChildOptions,
    /// What [`Busy`] asks for.
    pub(super) told: Option<Duration>,
    /// The exceptions by kind, as they were said.
    pub(super) on_exit: Vec<(ExitKind, OnExit)>,
    pub(super) requires: Vec<String>,
    /// How long it takes to be ready. `None`: for ever.
    pub(super) ready: Option<Duration>,
    /// How long it takes to end when it is asked to. `None`: it is deaf.
    pub(super) stops: Option<Duration>,
    /// How long it takes to end when it is aborted. `None`: it leaks.
    pub(super) dies: Option<Duration>,
    /// What the next incarnations do. Those after them run.
    pub(super) plays: VecDeque<Play>,
    /// Who takes its place.
    fallback: Option<Box<Kid>>,
    /// What is answered about the next failures, and how much later. After them, restarts at once.
    pub(super) answers: VecDeque<(Duration, Resolution)>,
    /// Nothing is answered.
    pub(super) silent: bool,
}

/// A child that is active at once, runs until it is asked to end and then ends at once.
pub(super) fn kid(name: &str) -> Kid {
    Kid {
        name: name.to_owned(),
        options: ChildOptions::default(),
        told: None,
        on_exit: Vec::new(),
        requires: Vec::new(),
        ready: Some(Duration::ZERO),
        stops: Some(Duration::ZERO),
        dies: Some(Duration::ZERO),
        plays: VecDeque::new(),
        fallback: None,
        answers: VecDeque::new(),
        silent: false,
    }
}

impl Kid {
    pub(super) fn restart(mut self, restart: RestartType) -> Self {
        self.options.restart = Some(restart.into());
        self
    }

    pub(super) fn trigger(mut self, trigger: Trigger) -> Self {
        self.options.restart = Some(trigger);
        self
    }

    pub(super) fn on_exit(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.options.exceptions.on_exit(kind, then);
        self.on_exit.push((kind, then));
        self
    }

    /// Waits for so long after a [`Busy`].
    pub(super) fn told(mut self, wait: Duration) -> Self {
        self.options.retry_after.add(move |_: &Busy| Some(wait));
        self.told = Some(wait);
        self
    }

    /// Comes back after any end, whatever was said before.
    pub(super) fn always_restarts(mut self) -> Self {
        self.options.exceptions = Exceptions::default();
        self.on_exit.clear();
        self.restart(RestartType::Permanent)
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

    /// Is a supervisor, with nothing below it that takes time to abort.
    pub(super) fn supervisor(mut self) -> Self {
        self.options.supervisor = Some(Duration::ZERO);
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

    pub(super) fn intensity(mut self, intensity: Intensity) -> Self {
        self.options.limits.intensity(intensity);
        self
    }

    pub(super) fn consecutive(mut self, max: u32) -> Self {
        self.options.limits.consecutive(max);
        self
    }

    pub(super) fn failing_for(mut self, max: Duration) -> Self {
        self.options.limits.failing_for(max);
        self
    }

    pub(super) fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.options.on_exhausted = Some(on_exhausted);
        self
    }

    /// That one takes its place when it has failed too often, under its name.
    pub(super) fn fallback(mut self, mut fallback: Self) -> Self {
        fallback.options.is_fallback = true;
        fallback.name.clone_from(&self.name);
        self.options.fallback = Some(Arc::new(fallback.options.clone()));
        self.fallback = Some(Box::new(fallback));
        self
    }

    /// Has no limits of its own, and does not end the program.
    pub(super) fn endless(mut self) -> Self {
        self.options.limits = WrittenLimits::default();
        self.plays.retain(|&play| play != Play::Exit);
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

    /// Is started by a message.
    pub(super) fn on_message(mut self) -> Self {
        self.options.on_message = true;
        self
    }

    /// Its messages wait in its place.
    pub(super) fn delays_traffic(mut self) -> Self {
        self.options.delays_traffic = true;
        self
    }

    /// That it is unhealthy is a failure.
    pub(super) fn fails_unhealthy(mut self) -> Self {
        self.options.fails_unhealthy = true;
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

    /// What becomes of it when it fails is answered so.
    pub(super) fn answers(
        mut self,
        answers: impl IntoIterator<Item = (Duration, Resolution)>,
    ) -> Self {
        self.answers.extend(answers);
        self
    }

    /// What becomes of it when it fails is not answered by itself.
    pub(super) fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Requires nobody and is not significant: a child of a dynamic supervisor.
    pub(super) fn alone(mut self) -> Self {
        self.requires.clear();
        self.options.significant = false;
        self
    }

    pub(super) fn replacement(&self) -> Option<&Self> {
        self.fallback.as_deref()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn nature(&self) -> Arc<Nature> {
        Arc::new(Nature {
            name: self.name.as_str().into(),
            options: Arc::new(self.options.clone()),
            requires: self.requires.iter().map(|name| name.as_str().into()).collect(),
        })
    }

    pub(super) fn plays(mut self, plays: impl IntoIterator<Item = Play>) -> Self {
        self.plays.extend(plays);
        self
    }
}

#[derive(Clone, Debug)]
enum Happening {
    Ready,
    Ignored,
    Exited(ExitReason),
    Answered(FailureDecision),
}

/// What a line of the transcript is about.
#[derive(Debug)]
enum Line {
    Act,
    Cause,
    Edge(Key),
    Other,
}

/// See the [module](self).
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) now: Instant,
    began: Instant,
    witness: Witness,
    kids: BTreeMap<Key, Kid>,
    provided: BTreeMap<String, RequirementId>,
    agenda: BTreeMap<(Instant, u64), (Key, IncarnationNumber, Happening)>,
    serial: u64,
    transcript: Vec<(Instant, Line, String)>,
    read: usize,
    told: BTreeMap<Key, usize>,
    answers: BTreeMap<Ticket, String>,
    tickets: Ticket,
    ticks: usize,
}

/// Rules without backoff, as OTP has them, and without a limit.
pub(super) fn rules() -> Rules {
    Rules { backoff: Backoff::none(), intensity: None, ..Rules::default() }
}

/// So many restarts a minute.
pub(super) fn at_most(max: u32) -> Option<Intensity> {
    Some(Intensity::sliding(max, secs(60)))
}

impl World {
    /// A supervisor with these children, that has not begun.
    pub(super) fn ordered(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> Self {
        let now = Instant::now();
        let mut world = Self::around(Machine::ordered(rules, now, 7), now);
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
        assert!(world.is_up(), "{}", world.tail());
        world.skip();
        world
    }

    /// Children named by letters, all of which have started.
    pub(super) fn named(rules: Rules, names: &str) -> Self {
        Self::running(rules, names.split(' ').map(kid))
    }
}

impl World {
    pub(super) fn dynamic(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> Self {
        let now = Instant::now();
        let mut world = Self::around(Machine::dynamic(rules, now, 7), now);
        world.settle();
        for kid in kids {
            world.add(kid);
        }
        world.settle();
        world.skip();
        world
    }
}

impl World {
    fn around(machine: Machine, now: Instant) -> Self {
        Self {
            witness: Witness::of(&machine),
            machine,
            now,
            began: now,
            kids: BTreeMap::new(),
            provided: BTreeMap::new(),
            agenda: BTreeMap::new(),
            serial: 0,
            transcript: Vec::new(),
            read: 0,
            told: BTreeMap::new(),
            answers: BTreeMap::new(),
            tickets: 0,
            ticks: 0,
        }
    }

    fn insert(&mut self, mut kid: Kid) -> Key {
        // Whoever requires a name that there has never been is refused before he gets here.
        kid.requires.retain(|name| self.witness.key(name).is_some());
        let nature = kid.nature();
        let key = self.machine.add(Arc::clone(&nature.options), self.now);
        self.witness.added(key, nature, self.now);
        self.kids.insert(key, kid);
        key
    }

    fn link(&mut self, key: Key) {
        let kid = &self.kids[&key];
        let provides = self.provided.get(&kid.name).copied();
        let requires = kid.requires.clone();
        if provides.is_none() && requires.is_empty() {
            return;
        }
        let ids = requires.into_iter().map(|name| {
            let id = self.provided.get(&name).copied();
            id.unwrap_or_else(|| {
                let id = self.machine.provided_by(self.key(&name));
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
        self.ask(&name, ChildRequest::Start)
    }

    pub(super) fn key(&self, name: &str) -> Key {
        self.witness.key(name).expect("a child")
    }

    pub(super) fn kid(&mut self, name: &str) -> &mut Kid {
        let key = self.key(name);
        self.kids.get_mut(&key).expect("a child")
    }

    /// Every child does from now on what it should.
    pub(super) fn heal(&mut self) {
        let keys: Vec<_> = self.kids.keys().copied().collect();
        for key in keys {
            // And whoever may take its place: that may be decided already.
            let mut kid = Some(self.kids.get_mut(&key).expect("a child"));
            while let Some(it) = kid {
                it.plays.clear();
                it.answers.clear();
                it.silent = false;
                (it.ready, it.stops, it.dies) = (Some(ms(1)), Some(ms(1)), Some(ms(1)));
                kid = it.fallback.as_deref_mut();
            }
            let child = &self.witness.children[&key];
            let (live, asked) = (child.live, child.cancelled || child.aborted);
            let incarnation = child.incarnation;
            if live && asked {
                self.plan(ms(1), key, incarnation, Happening::Exited(ExitReason::Shutdown));
            } else if live && child.lifecycle == Lifecycle::Activating {
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
        self.event(MachineEvent::Stop { within: None });
        self.settle();
    }

    /// The incarnation that is there says something.
    pub(super) fn says(&mut self, name: &str, what: fn(Key, IncarnationNumber) -> MachineEvent) {
        let key = self.key(name);
        self.event(what(key, self.witness.children[&key].incarnation));
    }

    fn happen(&mut self, key: Key, happening: Happening) {
        let incarnation = self.witness.children[&key].incarnation;
        self.deliver(key, incarnation, happening);
    }

    /// A message comes that waits for the child.
    pub(super) fn send(&mut self, name: &str) {
        self.event(MachineEvent::MessagePending { key: self.key(name) });
    }

    /// It is decided what becomes of the child, asked or not.
    pub(super) fn decide(&mut self, name: &str, decision: FailureDecision) {
        self.happen(self.key(name), Happening::Answered(decision));
    }

    /// The incarnation that is there says how its end is to be answered.
    pub(super) fn policy(&mut self, name: &str, policy: impl Into<Option<RestartPolicy>>) {
        let key = self.key(name);
        let incarnation = self.witness.children[&key].incarnation;
        let policy = policy.into().map(Arc::new);
        self.event(MachineEvent::Policy { key, incarnation, policy });
    }

    fn deliver(&mut self, key: Key, incarnation: IncarnationNumber, happening: Happening) {
        // Who was asked does not know whether anybody still wants to hear it.
        if let Happening::Answered(decision) = happening {
            return self.event(MachineEvent::Answered { key, incarnation, decision });
        }
        if self.live(key) == Some(incarnation) {
            self.event(match happening {
                Happening::Ready => MachineEvent::Ready { key, incarnation },
                Happening::Ignored => MachineEvent::Ignored { key, incarnation },
                Happening::Exited(reason) => MachineEvent::Exited { key, incarnation, reason },
                Happening::Answered(_) => unreachable!("answered above"),
            });
        }
    }

    /// Somebody asks for something.
    pub(super) fn ask(&mut self, name: &str, request: ChildRequest) -> Ticket {
        self.ask_for(self.key(name), request)
    }

    pub(super) fn ask_for(&mut self, key: Key, request: ChildRequest) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        self.event(MachineEvent::Request { ticket, key, request });
        ticket
    }

    /// Asks, lets all that follows at once follow, and returns the answer.
    pub(super) fn call(&mut self, name: &str, request: ChildRequest) -> &str {
        let ticket = self.ask(name, request);
        self.settle();
        self.answer(ticket)
    }

    /// The answer to a question, or a dash while there is none.
    pub(super) fn answer(&self, ticket: Ticket) -> &str {
        self.answers.get(&ticket).map_or("-", String::as_str)
    }

    pub(super) fn event(&mut self, event: MachineEvent) {
        self.ticks += usize::from(matches!(event, MachineEvent::Tick));
        self.transcript.push((self.now, Line::Other, format!("← {event:?}")));
        let mut effects = Vec::new();
        let kept = self.witness.watch(&mut self.machine, event, self.now, &mut effects);
        for effect in effects {
            self.carry_out(effect);
        }
        if let Err(broken) = kept {
            panic!("broken: {broken}\n{}", self.tail());
        }
    }

    // What the machine wants.

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { key, incarnation, cause } => {
                let name = format!("{}#{incarnation}", self.kids[&key].name);
                self.transcript.push((self.now, Line::Cause, format!("{name} {cause}")));
                self.act(format!("start {name}"));
                self.play(key, incarnation);
            }
            Effect::HoldMessages { key, until } => {
                let left = until - self.now;
                self.act(format!("hold {} {left:?}", self.kids[&key].name));
            }
            Effect::StaysDown { key } => {
                let line = format!("{} stays", self.kids[&key].name);
                self.transcript.push((self.now, Line::Other, line));
            }
            Effect::Cancel { key } => {
                let (name, stops) = (self.kids[&key].name.clone(), self.kids[&key].stops);
                self.act(format!("cancel {name}"));
                self.end_after(stops, key, ExitReason::Shutdown);
            }
            Effect::Abort { key } => {
                let (name, dies) = (self.kids[&key].name.clone(), self.kids[&key].dies);
                self.act(format!("abort {name}"));
                self.end_after(dies, key, ExitReason::Aborted);
            }
            Effect::Leaked { key, incarnation } => {
                self.act(format!("leaked {}#{incarnation}", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::GiveUp, .. } => {
                self.act(format!("gave up {}", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::EndSupervisor, .. } => {
                self.act(format!("{} ends all", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::FailSupervisor, .. } => {
                self.act(format!("{} fails all", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::Pause { .. }, .. } => {
                self.act(format!("pause {}", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::Decline, .. } => {
                self.act(format!("declined {}", self.kids[&key].name));
            }
            Effect::Decided { key, decision: Decision::Escalate, .. } => {
                self.act(format!("escalated {}", self.kids[&key].name));
            }
            Effect::Health { key, problem, .. } => {
                let well = if problem.is_some() { "unhealthy" } else { "healthy" };
                self.act(format!("{well} {}", self.kids[&key].name));
            }
            Effect::Decided { .. } | Effect::Ended { .. } => {}
            Effect::Replaced { key } => {
                self.act(format!("replaced {}", self.kids[&key].name));
                let kid = self.kids.get_mut(&key).expect("a child");
                *kid = *kid.fallback.take().expect("a fallback");
            }
            Effect::Ask { key, incarnation, attempt, .. } => {
                let name = &self.kids[&key].name;
                self.act(format!("ask {name}#{incarnation} ({attempt})"));
                self.reply_to(key, incarnation);
            }
            Effect::Unanswered { key, incarnation } => {
                self.act(format!("no answer {}#{incarnation}", self.kids[&key].name));
            }
            Effect::Changed { key, .. } => self.act(format!("changed {}", self.kids[&key].name)),
            Effect::Removed { key, .. } => self.act(format!("removed {}", self.kids[&key].name)),
            Effect::Report(report) => self.report(report),
            Effect::Reply { ticket, answer } => {
                let answer = word(&answer);
                let line = format!("reply {ticket}: {answer}");
                self.transcript.push((self.now, Line::Other, line));
                self.answers.insert(ticket, answer);
            }
            Effect::Up => self.act("up".to_owned()),
            Effect::Finish(finish) => {
                let line = self.last_word(&finish);
                self.act(line);
            }
        }
    }

    fn end_after(&mut self, after: Option<Duration>, key: Key, reason: ExitReason) {
        let incarnation = self.witness.children[&key].incarnation;
        if let Some(after) = after {
            self.plan(after, key, incarnation, Happening::Exited(reason));
        }
    }

    fn reply_to(&mut self, key: Key, incarnation: IncarnationNumber) {
        let kid = self.kids.get_mut(&key).expect("a child");
        if kid.silent {
            return;
        }
        let (after, resolution) =
            kid.answers.pop_front().unwrap_or((Duration::ZERO, Resolution::Restart));
        self.plan(after, key, incarnation, Happening::Answered(resolution.into()));
    }

    fn play(&mut self, key: Key, incarnation: IncarnationNumber) {
        let kid = self.kids.get_mut(&key).expect("a child");
        let play = kid.plays.pop_front().unwrap_or(Play::Run);
        let Some(after) = kid.ready else { return };
        let happening = match play {
            Play::Run if !kid.options.signals => return,
            Play::Run => Happening::Ready,
            Play::Ignore => Happening::Ignored,
            other => Happening::Exited(other.reason()),
        };
        self.plan(after, key, incarnation, happening);
    }

    fn plan(&mut self, after: Duration, key: Key, incarnation: IncarnationNumber, what: Happening) {
        self.serial += 1;
        self.agenda.insert((self.now + after, self.serial), (key, incarnation, what));
    }

    fn report(&mut self, report: Report) {
        let Report { key, from, to, ending, .. } = report;
        let ending = ending.map(|ending| format!(" ({ending})")).unwrap_or_default();
        let line = format!("{}: {from} → {to}{ending}", self.kids[&key].name);
        self.transcript.push((self.now, Line::Edge(key), line));
    }

    fn last_word(&self, finish: &Finish) -> String {
        let name = |key: &Key| &self.kids[key].name;
        match finish {
            Finish::Stopped => "finish stopped".to_owned(),
            Finish::Aborted => "finish aborted".to_owned(),
            Finish::AutoShutdown => "finish auto".to_owned(),
            Finish::Failed { key, reason } => {
                format!("finish failed {}: {}", name(key), reason.kind())
            }
            Finish::Escalated { key, reason } => {
                format!("finish escalated {}: {}", name(key), reason.kind())
            }
            Finish::Exit { key, reason, code } => {
                format!("finish exit {code} {}: {}", name(key), reason.kind())
            }
            Finish::StartFailed { key, reason } => {
                format!("finish start failed {}: {}", name(key), reason.kind())
            }
        }
    }

    /// Nothing more happens by itself: whoever should be up is up.
    pub(super) fn check_rest(&self) {
        if let Err(broken) = self.witness.check_rest(&self.machine) {
            panic!("broken: {broken}\n{}", self.tail());
        }
    }

    fn check(&self, right: bool, what: &str) {
        assert!(right, "broken: {what}\n{}", self.tail());
    }

    // Time.

    /// Lets everything happen that happens now.
    pub(super) fn settle(&mut self) {
        let mut events = 0;
        while !self.finished() {
            let due = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now);
            if let Some(entry) = due {
                let (key, incarnation, happening) = entry.remove();
                self.deliver(key, incarnation, happening);
            } else if self.machine.next_deadline().is_some_and(|at| at <= self.now) {
                self.event(MachineEvent::Tick);
            } else {
                return;
            }
            events += 1;
            self.check(events < 1_000 + 16 * self.kids.len(), "no instant lasts for ever");
        }
    }

    /// The machine's next deadline comes.
    pub(super) fn due(&mut self) {
        let at = self.machine.next_deadline().expect("a deadline");
        self.now = self.now.max(at);
        self.event(MachineEvent::Tick);
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
        if self.finished() {
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
        self.witness.finished.is_some()
    }

    pub(super) fn is_up(&self) -> bool {
        self.witness.up
    }

    /// The names of all children that there are, in order of their keys.
    pub(super) fn present(&self) -> Vec<(String, Key)> {
        self.witness.present().map(|(key, child)| (child.nature.name.to_string(), key)).collect()
    }

    pub(super) fn lifecycle(&self, name: &str) -> Lifecycle {
        self.witness.children[&self.key(name)].lifecycle
    }

    /// Why the child is in the state in which it is.
    pub(super) fn why(&self, name: &str) -> Option<&'static str> {
        self.machine.view(self.key(name), self.now).and_then(|view| view.why)
    }

    /// Whose end is waited for before the next one is asked to stop.
    pub(super) fn stops_now(&self) -> Option<&str> {
        self.machine.stops_now().map(|key| self.kids[&key].name())
    }

    pub(super) fn state(&self, key: Key) -> Option<State> {
        self.machine.children().state(key)
    }

    pub(super) fn live(&self, key: Key) -> Option<IncarnationNumber> {
        let child = &self.witness.children[&key];
        child.live.then_some(child.incarnation)
    }

    /// The incarnations that are live, as in `a#1 b#2`.
    pub(super) fn alive(&self) -> String {
        let live = self.witness.children.values().filter(|child| child.live);
        let names = live.map(|child| format!("{}#{}", child.nature.name, child.incarnation));
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
        let keys: Vec<_> = self.kids.keys().copied().collect();
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

fn word(answer: &ChildAnswer) -> String {
    match answer {
        ChildAnswer::Done => "done".to_owned(),
        ChildAnswer::Started(incarnation) => format!("started {incarnation}"),
        ChildAnswer::Ignored => "ignored".to_owned(),
        ChildAnswer::Gated => "gated".to_owned(),
        ChildAnswer::Dormant => "dormant".to_owned(),
        ChildAnswer::Failed(reason) => format!("failed {}", reason.kind()),
        ChildAnswer::Running => "running".to_owned(),
        ChildAnswer::Restarting => "restarting".to_owned(),
        ChildAnswer::InvalidState(lifecycle) => format!("unfit {lifecycle}"),
        ChildAnswer::NotFound => "not found".to_owned(),
        ChildAnswer::ShuttingDown => "shutting down".to_owned(),
        ChildAnswer::MaxChildren(max) => format!("max {max}"),
        ChildAnswer::Stopped => "stopped".to_owned(),
    }
}
