//! What must hold at every event of any machine, whatever drives it.
//!
//! [`Invariants`] passes each event to a machine and checks each effect. It keeps its own account of
//! every child, from events and effects alone, and names the first invariant that is broken. The
//! [simulation](crate::core::verify::simulation) checks every event of every test, the exploration every
//! event of every order of events.
//!
//! It knows neither how children behave nor what a test is about. That a machine does too little shows
//! only when [nothing more happens](Invariants::check_rest).
//!
//! # Invariants
//!
//! 1. A child has at most one live incarnation, numbered from 1 without gaps. An incarnation is
//!    cancelled at most once and aborted at most once, and leaks only if it was aborted.
//! 2. Each report is a legal edge, begins where the last one ended, and says how long that took.
//! 3. Nothing is started once the end has begun. The end comes once, without a live child, with all
//!    children Stopped and all callers answered. No effect follows it.
//! 4. A child is removed once, from Stopped, and no caller waits for it then. Each ticket is answered
//!    once, and the machine knows the callers that were not answered.
//! 5. An event of an incarnation that is over changes nothing.
//!
//! The failure callback is in [`answers`], costs and delays in [`costs`], starts by messages in
//! [`messages`], groups and orders in [`order`], what holds between two events in [`counts`], and what
//! holds when nothing more happens in [`rest`].

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use crate::core::child::Timer;
use crate::core::{
    ChildAnswer, ChildRequest, Decision, Effect, IncarnationNumber, Key, Machine, MachineEvent,
    Report, SLICE, Ticket,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::FailureDecision;
use crate::policy::{Rules, Strategy};
pub(super) use child::{ChildAccount, Declaration, QuestionState};
use grants::Grants;

mod account;
mod answers;
mod child;
mod costs;
mod counts;
mod grants;
mod health;
mod messages;
mod order;
mod rest;

/// Which invariant was broken.
pub(super) type Violation = String;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Invariants {
    /// All children that were ever added.
    pub(super) children: BTreeMap<Key, ChildAccount>,
    pub(super) waiting: BTreeMap<Ticket, (Key, ChildRequest)>,
    pub(super) up: bool,
    pub(super) finished: Option<Instant>,
    /// The last child of each name.
    names: BTreeMap<Arc<str>, Key>,
    /// The incarnation that ended last.
    ended: Option<(Key, IncarnationNumber)>,
    /// Whether the end has begun.
    ending: bool,
    /// All children are aborted, in no order.
    aborting: bool,
    /// A caller has terminated the child that a group waited for, and no new group operation has begun.
    abandoned: bool,
    /// Restarts that count.
    granted: Grants,
    /// Until then every child that fails waits, and nothing is counted.
    paused: Option<Instant>,
    rules: Arc<Rules>,
    strategy: Strategy,
    ordered: bool,

    // Of the current event.
    /// The children that were started.
    fresh: Vec<Key>,
    /// The request.
    asked: Option<Ticket>,
    /// The child that has ended by itself and waits for a decision.
    left: Option<Key>,
    /// The answer to a caller was that a start has failed.
    told_failed: bool,
    /// A significant child has ended and does not restart.
    significant_left: bool,
    /// The Active child whose health check has a result, and whether it has to fail.
    checked: Option<(Key, bool)>,
    /// The child whose messages are held back from its next start on, and until when.
    holding: Option<(Key, Instant)>,
    /// The children that an effect has reported on.
    told: Vec<Key>,
}

impl Invariants {
    /// The account of a machine that has not begun.
    pub(super) fn of(machine: &Machine) -> Self {
        let rules = Arc::clone(&machine.children().rules);
        let strategy = if machine.is_ordered() { rules.strategy } else { Strategy::OneForOne };
        Self {
            children: BTreeMap::new(),
            waiting: BTreeMap::new(),
            up: false,
            finished: None,
            names: BTreeMap::new(),
            ended: None,
            ending: false,
            aborting: false,
            abandoned: false,
            granted: Grants::default(),
            paused: None,
            rules,
            strategy,
            ordered: machine.is_ordered(),
            fresh: Vec::new(),
            asked: None,
            left: None,
            told_failed: false,
            significant_left: false,
            checked: None,
            holding: None,
            told: Vec::new(),
        }
    }

    /// Notes a child that was added.
    pub(super) fn added(&mut self, key: Key, declaration: Arc<Declaration>, now: Instant) {
        self.names.insert(Arc::clone(&declaration.name), key);
        let child = ChildAccount::new(declaration, self.children.len() as u64, now);
        assert!(self.children.insert(key, child).is_none(), "a key is given once");
    }

    /// The last child of this name, removed or not.
    pub(super) fn key(&self, name: &str) -> Option<Key> {
        self.names.get(name).copied()
    }

    /// The children that were not removed.
    pub(super) fn present(&self) -> impl Iterator<Item = (Key, &ChildAccount)> {
        let present = self.children.iter().filter(|(_, child)| !child.forgotten);
        present.map(|(&key, child)| (key, child))
    }

    fn name(&self, key: Key) -> &str {
        &self.children[&key].declaration.name
    }

    fn child(&mut self, key: Key) -> &mut ChildAccount {
        self.children.get_mut(&key).expect("a child")
    }

    /// Passes an event to the machine, and checks its effects and what it shows afterwards.
    pub(super) fn watch(
        &mut self,
        machine: &mut Machine,
        event: MachineEvent,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        self.before(&event, machine, now);
        let line = order::line(machine);
        machine.on_event(event, now, effects);

        let mut visited: Vec<_> = effects.iter().filter_map(subject).collect();
        visited.sort_unstable();
        visited.dedup();
        ensure(visited.len() <= 2 * SLICE + 2, "an event visits few children")?;
        for effect in &*effects {
            self.take(effect, now)?;
        }
        self.check_counts(machine, now)?;
        self.check_costs(machine, now)?;
        self.check_end(machine)?;
        self.check_heard()?;
        self.check_returns(machine)?;
        self.check_line(&line, machine)?;
        ensure(self.holding.is_none(), "a hold is followed by the start that it is for")?;
        match self.ended {
            Some((key, incarnation)) => {
                let asked = self.is_asked(key, incarnation);
                check_echo(machine, key, incarnation, asked, now)
            }
            None => Ok(()),
        }
    }

    /// Repeats all events of all incarnations that are over. They must have no effect.
    pub(super) fn check_echoes(
        &self,
        machine: &mut Machine,
        now: Instant,
    ) -> Result<(), Violation> {
        for (&key, child) in &self.children {
            let over = child.incarnation.saturating_sub(u32::from(child.live));
            if over > 0 {
                check_echo(machine, key, over, self.is_asked(key, over), now)?;
            }
        }
        Ok(())
    }

    fn before(&mut self, event: &MachineEvent, machine: &Machine, now: Instant) {
        self.ending = matches!(event, MachineEvent::Stop { .. } | MachineEvent::AbortAll)
            || is_ending(machine);
        let total = machine.children().timers.at(Timer::Total).is_some_and(|at| at <= now);
        self.aborting |= total || matches!(event, MachineEvent::AbortAll);
        self.fresh.clear();
        self.told.clear();
        (self.asked, self.left) = (None, None);
        (self.told_failed, self.significant_left) = (false, false);
        self.note(event, machine, now);
        self.check_up(event);
        self.listen(event);
        self.note_message(event);
        match event {
            &MachineEvent::Exited { key, incarnation, .. }
            | &MachineEvent::Ignored { key, incarnation } => {
                let child = self.child(key);
                if child.incarnation == incarnation {
                    child.live = false;
                    let by_itself = !child.cancelled && !child.aborted;
                    let free = child.condemned.is_some();
                    self.ended = Some((key, incarnation));
                    let exited = matches!(event, MachineEvent::Exited { .. });
                    self.left = (by_itself && exited && !free).then_some(key);
                }
            }
            &MachineEvent::Request { ticket, key, request } => {
                self.waiting.insert(ticket, (key, request));
                self.asked = Some(ticket);
            }
            _ => {}
        }
    }

    fn take(&mut self, effect: &Effect, now: Instant) -> Result<(), Violation> {
        if self.finished.is_some() {
            return Err(format!("{effect:?} came after the end"));
        }
        match effect {
            &Effect::Start { key, incarnation, cause } => {
                self.check_start(key, cause, now)?;
                self.check_traffic(key, cause, now)?;
                self.started(key, incarnation)
            }
            &Effect::HoldMessages { key, until } => self.hold(key, until),
            &Effect::StaysDown { key } => self.stays(key),
            &Effect::Cancel { key } => {
                self.check_cancel(key)?;
                let child = self.child(key);
                let once = child.live && !std::mem::replace(&mut child.cancelled, true);
                ensure(once, "a live child is asked once")
            }
            &Effect::Abort { key } => {
                let child = self.child(key);
                let once = child.live && !std::mem::replace(&mut child.aborted, true);
                ensure(once, "a live child is aborted once")
            }
            &Effect::Leaked { key, incarnation } => {
                self.told.push(key);
                self.ended = Some((key, incarnation));
                let child = self.child(key);
                let was_live = std::mem::replace(&mut child.live, false);
                child.leaked = true;
                let right = was_live && child.aborted && child.incarnation == incarnation;
                ensure(right, "only what was aborted and is still there has leaked")
            }
            &Effect::Ask { key, incarnation, attempt, ref reason } => {
                self.check_question(key, incarnation, attempt, reason, now)
            }
            &Effect::Unanswered { key, .. } => self.check_silence(key, now),
            &Effect::Changed { key, .. } => self.check_change(key),
            &Effect::Decided { key, ref reason, decision, .. } => {
                self.told.push(key);
                self.significant_left |= decision == Decision::Leave && self.is_last(key);
                self.decided(key, reason, decision, now)
            }
            &Effect::Health { key, incarnation, .. } => self.check_health(key, incarnation),
            &Effect::Ended { key, lived, ref reason, .. } => {
                self.check_illness(key, reason)?;
                let child = self.child(key);
                child.was_active = lived.is_some() || child.itself;
                Ok(())
            }
            &Effect::Replaced { key } => self.replaced(key),
            &Effect::Removed { key, .. } => self.removed(key),
            Effect::Report(report) => {
                self.told.push(report.key);
                self.report(*report, now)
            }
            Effect::Reply { ticket, answer } => {
                self.told_failed |= matches!(answer, ChildAnswer::Failed(_));
                let Some((key, request)) = self.waiting.remove(ticket) else {
                    return Err("a ticket is answered once".to_owned());
                };
                self.check_answer(key, request, answer)
            }
            Effect::Up => {
                let first = !std::mem::replace(&mut self.up, true);
                ensure(first, "it comes up once")
            }
            Effect::Finish(_) => {
                self.finished = Some(now);
                let live = self.children.values().any(|child| child.live);
                ensure(!live, "no child is live at the end")?;
                let stopped =
                    self.present().all(|(_, child)| child.lifecycle == Lifecycle::Stopped);
                ensure(stopped, "all children are Stopped at the end")?;
                ensure(self.waiting.is_empty(), "no caller waits at the end")
            }
        }
    }

    fn started(&mut self, key: Key, incarnation: IncarnationNumber) -> Result<(), Violation> {
        ensure(!self.ending, "nothing is started once the end has begun")?;
        let child = self.child(key);
        ensure(!child.live, "a child has one live incarnation")?;
        ensure(incarnation == child.incarnation + 1, "incarnations are counted")?;
        ensure(child.lifecycle == Lifecycle::Activating, "what is started is activating")?;
        child.incarnation = incarnation;
        (child.live, child.cancelled, child.aborted) = (true, false, false);
        (child.decided, child.itself, child.leaked) = (false, false, false);
        (child.condemned, child.told_failed) = (None, false);
        (child.returns, child.replaced) = (false, false);
        (child.asked_once, child.policy) = (false, None);
        (child.message_pending, child.put_down, child.left_alone) = (false, false, false);
        self.fresh.push(key);
        Ok(())
    }

    fn removed(&mut self, key: Key) -> Result<(), Violation> {
        let child = self.child(key);
        let gone = !child.live && child.lifecycle == Lifecycle::Stopped;
        let first = !std::mem::replace(&mut child.forgotten, true);
        ensure(gone && first, "a child is forgotten once, and from Stopped")?;
        // The caller that requested the removal is answered next.
        let mut others = self.waiting.iter().filter(|&(&ticket, _)| Some(ticket) != self.asked);
        ensure(
            others.all(|(_, &(other, _))| other != key),
            "no caller waits for a child that is gone",
        )
    }

    fn report(&mut self, report: Report, now: Instant) -> Result<(), Violation> {
        let Report { key, incarnation, from, to, after, .. } = report;
        let child = self.child(key);
        let was = std::mem::replace(&mut child.lifecycle, to);
        let since = std::mem::replace(&mut child.since, now);
        if to == Lifecycle::Stopped {
            child.due = None;
            child.put_down = true;
        }
        // A decision of the callback is too late.
        if from == Lifecycle::Errored {
            child.question = QuestionState::None;
        }
        let expected = child.incarnation + u32::from(to == Lifecycle::Activating);
        ensure(from.can_become(to), "an edge is legal")?;
        ensure(from == was, "an edge begins where the last one ended")?;
        ensure(after == now - since, "an edge says how long it took to come")?;
        ensure(incarnation == expected, "an edge names the incarnation")?;
        self.lived(key, from, since, now);
        self.became(key, to);
        Ok(())
    }
}

/// Repeats all events of an incarnation that is over.
fn check_echo(
    machine: &mut Machine,
    key: Key,
    incarnation: IncarnationNumber,
    asked: bool,
    now: Instant,
) -> Result<(), Violation> {
    let before = machine.next_deadline();
    let reason = ExitReason::Hung;
    let mut effects = Vec::new();
    for event in [
        MachineEvent::Ready { key, incarnation },
        MachineEvent::Ignored { key, incarnation },
        MachineEvent::Healthy { key, incarnation },
        MachineEvent::StopSelf { key, incarnation },
        MachineEvent::Acked { key, incarnation },
        MachineEvent::Health { key, incarnation, problem: None },
        MachineEvent::Health { key, incarnation, problem: Some("ill".into()) },
        MachineEvent::Policy { key, incarnation, policy: Some(Arc::default()) },
        MachineEvent::Exited { key, incarnation, reason },
    ] {
        machine.on_event(event, now, &mut effects);
    }
    // The callback may still have to decide on it.
    if !asked {
        let decision = FailureDecision::give_up().with(());
        machine.on_event(MachineEvent::Answered { key, incarnation, decision }, now, &mut effects);
    }
    ensure(effects.is_empty(), "what an incarnation says that is over has no effect")?;
    let after = machine.next_deadline();
    ensure(before == after, "what an incarnation says that is over moves no deadline")
}

pub(super) fn is_ending(machine: &Machine) -> bool {
    matches!(machine.admits(), Err(ChildAnswer::ShuttingDown))
}

fn ensure(right: bool, what: impl Display) -> Result<(), Violation> {
    if right { Ok(()) } else { Err(what.to_string()) }
}

fn subject(effect: &Effect) -> Option<Key> {
    match effect {
        Effect::Start { key, .. }
        | Effect::HoldMessages { key, .. }
        | Effect::StaysDown { key }
        | Effect::Cancel { key }
        | Effect::Abort { key }
        | Effect::Leaked { key, .. }
        | Effect::Ended { key, .. }
        | Effect::Ask { key, .. }
        | Effect::Unanswered { key, .. }
        | Effect::Changed { key, .. }
        | Effect::Health { key, .. }
        | Effect::Decided { key, .. }
        | Effect::Replaced { key }
        | Effect::Removed { key, .. }
        | Effect::Report(Report { key, .. }) => Some(*key),
        Effect::Reply { .. } | Effect::Up | Effect::Finish(_) => None,
    }
}
