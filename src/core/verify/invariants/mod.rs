//! What must hold at every event of every machine.
//!
//! [`Invariants`] passes each event to a machine and checks each effect. It keeps its own account of
//! every child, from events and effects alone, and names the first invariant that is broken. The
//! [simulation](crate::core::verify::simulation) checks every event of every test, the exploration every
//! event of every order of events.
//!
//! The checks depend neither on how children behave nor on the test. A machine that does too little is
//! found only when [no deadline is left](Invariants::check_rest).
//!
//! # Invariants
//!
//! 1. A child has at most one live incarnation, numbered from 1 without gaps. An incarnation is
//!    cancelled at most once and aborted at most once, and leaks only if it was aborted.
//! 2. Each report is a legal edge, begins where the last one ended, and has the time since then.
//! 3. Nothing is started once the end has begun. The end comes once, without a live child, with all
//!    children Stopped and all callers answered. No effect follows it.
//! 4. A child is removed once, from Stopped, and no caller waits for it then. Each ticket is answered
//!    once, and the machine knows the callers that were not answered.
//! 5. An event of an incarnation that is over changes nothing.
//! 6. A caller that seeks a child changes nothing. It finds an incarnation that is Active, or waits, if it
//!    may, while the child is on its way up.
//!
//! The failure callback is in [`answers`], costs and delays in [`costs`], starts by messages in
//! [`messages`], groups and orders in [`order`], what holds between two events in [`counts`], and what
//! holds when nothing more happens in [`rest`]. Heartbeats are in [`watchdog`], run-time
//! limits in [`run_time`], leases in [`leases`], the records of all of these in [`conditions`].

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::child::{ChildState, Timer};
use crate::core::user_code::{NoUserCode, UserCode};
use crate::core::{
    ChildAnswer, ChildRequest, ConditionEffect, ConditionEvent, Decision, Effect,
    IncarnationNumber, Key, Machine, MachineEvent, Report, SLICE, Ticket,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureDecision, Rules, Strategy};
use crate::properties::Properties;
pub(super) use child::{ChildAccount, DeclaredChild, PendingDecision};
use grants::Grants;
pub(super) use leases::LeaseAccount;
use watchdog::Hung;

mod account;
mod answers;
mod child;
mod conditions;
mod costs;
mod counts;
mod grants;
mod health;
mod leases;
mod messages;
mod order;
mod rest;
mod run_time;
mod watchdog;

/// Which invariant was broken.
pub(super) type Violation = String;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Invariants {
    /// All children that were ever added.
    pub(super) children: BTreeMap<Key, ChildAccount>,
    /// The callers that were not answered, each with the restarts of the child's group since its request.
    pub(super) waiting: BTreeMap<Ticket, (Key, ChildRequest, u32)>,
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
    /// The time for an ordered stop is over. `true`: the stop order no longer counts.
    closing: Option<bool>,
    /// A caller has terminated the child that a group waited for, and no new group operation has begun.
    group_stays_down: bool,
    /// Restarts that count.
    granted: Grants,
    /// Until then every child that fails waits, and nothing is counted.
    paused: Option<Instant>,
    /// When a tick was late the last time.
    late: Option<Instant>,
    rules: Arc<Rules>,
    strategy: Strategy,
    ordered: bool,

    // Of the current event.
    /// The children that were started.
    started_now: Vec<Key>,
    /// The request.
    request: Option<Ticket>,
    /// The child that has exited by itself and is not decided on yet.
    undecided: Option<Key>,
    /// A caller was answered that a start has failed.
    answered_failed: bool,
    /// A significant child has ended and does not restart.
    significant_left: bool,
    /// The Active child whose health check has a result, and whether it has to fail.
    checked: Option<(Key, bool)>,
    /// The Active child that has answered with its last heartbeat, and whether it has hung.
    heard: Option<(Key, Hung)>,
    /// The children that an effect has reported on.
    reported: Vec<Key>,
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
            closing: None,
            group_stays_down: false,
            granted: Grants::default(),
            paused: None,
            rules,
            strategy,
            ordered: machine.is_ordered(),
            started_now: Vec::new(),
            request: None,
            undecided: None,
            answered_failed: false,
            significant_left: false,
            checked: None,
            heard: None,
            late: None,
            reported: Vec::new(),
        }
    }

    /// Notes a child that was added.
    pub(super) fn added(&mut self, key: Key, declaration: Arc<DeclaredChild>, now: Instant) {
        self.names.insert(Arc::clone(&declaration.name), key);
        let last = self.present().max_by_key(|(_, child)| child.place);
        let before = last.map_or(i8::MAX, |(_, child)| child.stop_order);
        let mut child =
            ChildAccount::new(declaration, &self.rules, self.children.len() as u64, now);
        child.stop_order = child.stop_order.min(before);
        assert!(self.children.insert(key, child).is_none(), "a key is given once");
    }

    /// The last child of this name, removed or not.
    pub(super) fn key(&self, name: &str) -> Option<Key> {
        self.names.get(name).copied()
    }

    /// The children that were not removed.
    pub(super) fn present(&self) -> impl Iterator<Item = (Key, &ChildAccount)> {
        let present = self.children.iter().filter(|(_, child)| !child.removed);
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
        user_code: &mut dyn UserCode,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        self.before_event(&event, machine, now);
        let idle = machine.next_deadline().is_none_or(|at| at > now);
        let seeks =
            matches!(&event, MachineEvent::Request { request: ChildRequest::Find { .. }, .. });
        let chain = order::stop_chain(machine);
        machine.on_event(event, now, user_code, effects);

        let mut visited: Vec<_> = effects.iter().filter_map(subject).collect();
        visited.sort_unstable();
        visited.dedup();
        ensure(visited.len() <= 2 * SLICE + 2, "an event visits few children")?;
        for effect in &*effects {
            self.check_effect(effect, now)?;
        }
        let only_answers = effects.iter().all(|it| matches!(it, Effect::Reply { .. }));
        ensure(!seeks || !idle || only_answers, "a caller that seeks a child changes nothing")?;
        self.check_seekers(machine)?;
        self.check_counts(machine, now)?;
        self.check_costs(machine, now)?;
        self.check_end(machine)?;
        self.check_health_reported()?;
        self.check_hung()?;
        self.check_returns(machine)?;
        self.check_stop_chain(&chain, machine)?;
        self.check_closing(machine)?;
        self.check_leases(machine)?;
        match self.ended {
            Some((key, incarnation)) => {
                let pending = self.awaits_decision(key, incarnation);
                check_echo(machine, key, incarnation, pending, now)
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
                check_echo(machine, key, over, self.awaits_decision(key, over), now)?;
            }
        }
        check_late_leases(&self.children, machine, now)
    }

    fn before_event(&mut self, event: &MachineEvent, machine: &Machine, now: Instant) {
        self.ending = is_ending(machine)
            || matches!(
                event,
                MachineEvent::Stop { .. } | MachineEvent::Close { .. } | MachineEvent::AbortAll
            );
        if let &MachineEvent::Close { all } = event {
            self.closing = self.closing.max(Some(all));
        }
        let total = machine.children().timers.at(Timer::Total).is_some_and(|at| at <= now);
        self.aborting |= total || matches!(event, MachineEvent::AbortAll);
        self.started_now.clear();
        self.reported.clear();
        (self.request, self.undecided) = (None, None);
        (self.answered_failed, self.significant_left) = (false, false);
        self.note(event, machine, now);
        self.note_health(event, now);
        self.note_heartbeat(event, machine, now);
        self.note_callback(event);
        self.note_message(event);
        self.note_lease(event);
        self.note_rules(event);
        match event {
            &MachineEvent::Exited { key, incarnation, .. }
            | &MachineEvent::Ignored { key, incarnation } => {
                let child = self.child(key);
                if child.incarnation == incarnation {
                    child.live = false;
                    let by_itself = !child.cancelled && !child.aborted;
                    let free = child.group_stop_from.is_some();
                    self.ended = Some((key, incarnation));
                    let exited = matches!(event, MachineEvent::Exited { .. });
                    self.undecided = (by_itself && exited && !free).then_some(key);
                }
            }
            &MachineEvent::Request { ticket, key, request } => {
                self.waiting.insert(ticket, (key, request, 0));
                self.request = Some(ticket);
            }
            _ => {}
        }
    }

    fn check_effect(&mut self, effect: &Effect, now: Instant) -> Result<(), Violation> {
        if self.finished.is_some() {
            return Err(format!("{effect:?} came after the end"));
        }
        match effect {
            &Effect::Start { key, incarnation, cause, held } => {
                self.check_start(key, cause, now)?;
                self.check_pending_message(key, cause, held, now)?;
                self.started(key, incarnation)
            }
            &Effect::Condition(ConditionEffect::SeekLease { key }) => self.check_sought(key),
            &Effect::Condition(ConditionEffect::EndLease { key, release }) => {
                self.check_lease_ended(key, release)
            }
            &Effect::StaysDown { key } => self.check_stays_down(key),
            &Effect::Cancel { key } => {
                self.check_cancel(key)?;
                let child = self.child(key);
                let once = child.live && !std::mem::replace(&mut child.cancelled, true);
                ensure(once, "a live child is cancelled once")
            }
            &Effect::Close { key, all } => self.check_close(key, all),
            &Effect::Abort { key } => {
                let child = self.child(key);
                let once = child.live && !std::mem::replace(&mut child.aborted, true);
                ensure(once, "a live child is aborted once")
            }
            &Effect::Leaked { key, incarnation } => {
                self.reported.push(key);
                self.ended = Some((key, incarnation));
                self.note_leaked_lease(key);
                let child = self.child(key);
                let was_live = std::mem::replace(&mut child.live, false);
                child.leaked = true;
                let right = was_live && child.aborted && child.incarnation == incarnation;
                ensure(right, "only an aborted child that still runs has leaked")
            }
            &Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, ref reason }) => {
                self.check_callback(key, incarnation, attempt, reason, now)
            }
            &Effect::Condition(ConditionEffect::Unanswered { key, .. }) => {
                self.check_no_decision(key, now)
            }
            &Effect::Condition(ConditionEffect::Changed { key, .. }) => self.check_changed(key),
            &Effect::Decided { key, ref reason, decision, .. } => {
                self.reported.push(key);
                self.significant_left |= decision == Decision::Leave && self.is_last(key);
                self.decided(key, reason, decision, now)?;
                if decision == Decision::FallBack { self.replaced(key) } else { Ok(()) }
            }
            &Effect::Condition(ConditionEffect::Health { key, incarnation, .. }) => {
                self.check_health(key, incarnation)
            }
            &Effect::Condition(ConditionEffect::CheckHeartbeat { key, incarnation }) => {
                self.check_asked(key, incarnation, now)
            }
            Effect::Condition(ConditionEffect::RuntimeLate { .. }) => {
                let spared = self.heard.is_some() && self.late.is_some();
                ensure(spared, "the runtime was late where it is reported")
            }
            &Effect::Ended { key, lived, ref reason, .. } => {
                self.check_unhealthy_exit(key, reason)?;
                self.check_hung_exit(key, reason)?;
                self.check_timed_out(key, reason, now)?;
                let child = self.child(key);
                child.was_active = lived.is_some() || child.stops_itself;
                Ok(())
            }
            &Effect::Removed { key, .. } => self.removed(key),
            Effect::Report(report) => {
                self.reported.push(report.key);
                self.report(*report, now)
            }
            Effect::Reply { ticket, answer } => {
                self.answered_failed |= matches!(answer, ChildAnswer::Failed(_));
                let Some((key, request, _)) = self.waiting.remove(ticket) else {
                    return Err("a ticket is answered once".to_owned());
                };
                let waited = self.request != Some(*ticket);
                let interrupted = waited && matches!(answer, ChildAnswer::Restarting);
                if matches!(request, ChildRequest::Start { .. }) && interrupted {
                    // It is started with its group, even if a message would have started it.
                    self.child(key).set_down = true;
                }
                self.check_answer(key, request, answer)
            }
            Effect::Up => {
                let first = !std::mem::replace(&mut self.up, true);
                ensure(first, "the supervisor comes up once")
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

    /// Checks that callers seek only children that are on their way up.
    fn check_seekers(&self, machine: &Machine) -> Result<(), Violation> {
        for &(key, request, _) in self.waiting.values() {
            if let ChildRequest::Find { wait } = request {
                ensure(wait, "a caller that does not wait is answered at once")?;
                let on_its_way = machine.whereabouts(key).is_none();
                // Its end answers them, or its group's walk once that comes to it.
                let stops = self.children[&key].live && !is_active(machine, key);
                let stops = stops || machine.is_to_stop(key);
                // A walk that takes several events may come to the child in the next one.
                let waits = machine.has_more() || !is_ending(machine) && (on_its_way || stops);
                ensure(waits, format!("a caller seeks {} without end", self.name(key)))?;
            }
        }
        Ok(())
    }

    fn started(&mut self, key: Key, incarnation: IncarnationNumber) -> Result<(), Violation> {
        ensure(!self.ending, "nothing is started once the end has begun")?;
        let child = self.child(key);
        ensure(!child.live, "a child has one live incarnation")?;
        ensure(!child.on_hold, "a held child is not started")?;
        let leased = child.declaration.options.lease_grace.is_some();
        let granted = child.lease == LeaseAccount::Granted;
        ensure(granted || !leased, "a child is started with its lease")?;
        ensure(incarnation == child.incarnation + 1, "incarnations are counted")?;
        ensure(child.lifecycle == Lifecycle::Activating, "a child that is started is activating")?;
        child.incarnation = incarnation;
        (child.live, child.cancelled, child.aborted) = (true, false, false);
        (child.decided, child.stops_itself, child.leaked) = (false, false, false);
        (child.taken_out, child.lost_lease) = (false, false);
        (child.group_stop_from, child.answered_failed) = (None, false);
        (child.returns, child.replaced) = (false, false);
        (child.callback_called, child.policy, child.passes_since) = (false, None, None);
        (child.message_pending, child.set_down, child.not_restarted) = (false, false, false);
        (child.dormant, child.heartbeat_due) = (false, false);
        self.started_now.push(key);
        Ok(())
    }

    fn removed(&mut self, key: Key) -> Result<(), Violation> {
        let child = self.child(key);
        let gone = !child.live && child.lifecycle == Lifecycle::Stopped;
        let first = !std::mem::replace(&mut child.removed, true);
        ensure(gone && first, "a child is removed once, and from Stopped")?;
        // The caller that requested the removal is answered next.
        let mut others = self.waiting.iter().filter(|&(&ticket, _)| Some(ticket) != self.request);
        ensure(others.all(|(_, &(other, ..))| other != key), "no caller waits for a removed child")
    }

    fn report(&mut self, report: Report, now: Instant) -> Result<(), Violation> {
        let Report { key, incarnation, from, to, since: reported, .. } = report;
        let child = self.child(key);
        let was = std::mem::replace(&mut child.lifecycle, to);
        let since = std::mem::replace(&mut child.since, now);
        let declined = (from, to) == (Lifecycle::Activating, Lifecycle::Stopped);
        child.has_passed |= to == Lifecycle::Active || declined;
        if to == Lifecycle::Stopped {
            child.due = None;
            (child.set_down, child.dormant) = (true, false);
        }
        // A decision of the callback is too late.
        if from == Lifecycle::Errored {
            child.pending_decision = PendingDecision::None;
        }
        let expected = child.incarnation + u32::from(to == Lifecycle::Activating);
        ensure(from.can_become(to), "an edge is legal")?;
        ensure(from == was, "an edge begins where the last one ended")?;
        ensure(reported == since, "an edge has the instant of the last edge")?;
        ensure(incarnation == expected, "an edge names the incarnation")?;
        self.note_left(key, from, since, now);
        self.note_entered(key, to);
        Ok(())
    }
}

/// Grants and takes away leases that aren't asked for or granted. This must have no effect.
pub(super) fn check_late_leases(
    children: &BTreeMap<Key, ChildAccount>,
    machine: &mut Machine,
    now: Instant,
) -> Result<(), Violation> {
    let mut effects = Vec::new();
    for (&key, child) in children {
        if child.lease != LeaseAccount::Sought {
            machine.on_event(
                MachineEvent::Condition(ConditionEvent::LeaseGranted {
                    key,
                    changes: Properties::default(),
                }),
                now,
                &mut NoUserCode,
                &mut effects,
            );
        }
        if child.lease != LeaseAccount::Granted {
            machine.on_event(
                MachineEvent::Condition(ConditionEvent::LeaseLost { key }),
                now,
                &mut NoUserCode,
                &mut effects,
            );
        }
    }
    ensure(effects.is_empty(), "a late report on a lease has no effect")
}

/// Repeats all events of an incarnation that is over.
fn check_echo(
    machine: &mut Machine,
    key: Key,
    incarnation: IncarnationNumber,
    pending: bool,
    now: Instant,
) -> Result<(), Violation> {
    let before = machine.next_deadline();
    let reason = ExitReason::Hung(Duration::from_secs(30));
    let mut effects = Vec::new();
    for event in [
        MachineEvent::Ready { key, incarnation },
        MachineEvent::Ignored { key, incarnation },
        MachineEvent::Healthy { key, incarnation },
        MachineEvent::StopSelf { key, incarnation },
        MachineEvent::Acked { key, incarnation },
        MachineEvent::Condition(ConditionEvent::Checked { key, incarnation, passed: true }),
        MachineEvent::Condition(ConditionEvent::Health { key, incarnation, problem: None }),
        MachineEvent::Condition(ConditionEvent::Health {
            key,
            incarnation,
            problem: Some("ill".into()),
        }),
        MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last: None }),
        MachineEvent::Policy { key, incarnation, policy: Some(Arc::default()) },
        MachineEvent::Exited { key, incarnation, reason },
    ] {
        machine.on_event(event, now, &mut NoUserCode, &mut effects);
    }
    // The callback may still have to decide on it.
    if !pending {
        let decision = FailureDecision::give_up().with(());
        let answered =
            MachineEvent::Condition(ConditionEvent::Answered { key, incarnation, decision });
        machine.on_event(answered, now, &mut NoUserCode, &mut effects);
    }
    ensure(effects.is_empty(), "an event of an incarnation that is over has no effect")?;
    let after = machine.next_deadline();
    ensure(before == after, "an event of an incarnation that is over moves no deadline")
}

pub(super) fn is_ending(machine: &Machine) -> bool {
    matches!(machine.admits(), Err(ChildAnswer::ShuttingDown))
}

fn is_active(machine: &Machine, key: Key) -> bool {
    machine.children().state(key) == Some(ChildState::Active)
}

fn ensure(right: bool, what: impl Display) -> Result<(), Violation> {
    if right { Ok(()) } else { Err(what.to_string()) }
}

fn subject(effect: &Effect) -> Option<Key> {
    match effect {
        Effect::Start { key, .. }
        | Effect::Condition(ConditionEffect::SeekLease { key })
        | Effect::Condition(ConditionEffect::EndLease { key, .. })
        | Effect::StaysDown { key }
        | Effect::Cancel { key }
        | Effect::Close { key, .. }
        | Effect::Abort { key }
        | Effect::Leaked { key, .. }
        | Effect::Ended { key, .. }
        | Effect::Condition(ConditionEffect::Ask { key, .. })
        | Effect::Condition(ConditionEffect::Unanswered { key, .. })
        | Effect::Condition(ConditionEffect::Changed { key, .. })
        | Effect::Condition(ConditionEffect::Health { key, .. })
        | Effect::Condition(ConditionEffect::CheckHeartbeat { key, .. })
        | Effect::Decided { key, .. }
        | Effect::Removed { key, .. }
        | Effect::Report(Report { key, .. }) => Some(*key),
        Effect::Condition(ConditionEffect::RuntimeLate { .. })
        | Effect::Reply { .. }
        | Effect::Up
        | Effect::Finish(_) => None,
    }
}
