//! What holds between two events.
//!
//! Compares what was reported with what the machine shows and keeps.
//!
//! # Invariants
//!
//! 1. The view of each child, and the counts, are what was reported.
//! 2. The machine counts its live and its significant children.
//! 3. Only a wait has a timer: a start with a timeout, a heartbeat, a backoff, a decision, a stop. An abort and a
//!    decision always have one, and a backoff's timer is the deadline that is shown.
//! 4. A requirement is met only by an existing child.
//! 5. The machine knows every caller that waits for an answer.

use std::sync::Arc;
use std::time::Instant;

use super::{ChildAccount, Invariants, Violation, ensure};
use crate::core::child::{AfterFailing, ChildState, DownState, StopReason, Timer};
use crate::core::{Key, Machine, View};

impl Invariants {
    pub(super) fn check_counts(&self, machine: &Machine, now: Instant) -> Result<(), Violation> {
        let children = machine.children();
        let mut by_lifecycle = [0; 8];
        let (mut live, mut left, mut leaving, mut running) = (0, 0, 0, 0);
        let (mut specs, mut supervisors) = (0, 0);
        for (key, child) in self.present() {
            let state = children.state(key).expect("a child that was not removed");
            let view = machine.view(key, now).expect("a child that was not removed");
            by_lifecycle[child.lifecycle as usize] += 1;
            specs += 1;
            supervisors += u32::from(child.declaration.options.facts.kind.is_supervisor());
            running += u32::from(child.live);
            let is_live = matches!(
                state,
                ChildState::Activating | ChildState::Active | ChildState::Stopping { .. }
            );
            live += u32::from(is_live);
            let significant = child.declaration.options.significant;
            left += u32::from(significant && will_run(state));
            leaving += u32::from(significant && is_leaving(state));

            ensure(view.lifecycle == child.lifecycle, "the view has the reported lifecycle")?;
            ensure(view.since == child.since, "the view has the time of the last edge")?;
            ensure(view.incarnation == child.incarnation, "the view has the incarnation")?;
            let rules = machine.rules_of(key).is_some_and(|it| Arc::ptr_eq(it, &view.rules));
            ensure(rules, "the view has the rules that are looked up alone")?;
            self.check_timer(machine, key, state, &view)?;
            self.check_requirements(machine, key, child)?;
            self.check_conditions(machine, key)?;
        }
        ensure(live == children.live && live == running, "live children are counted")?;
        ensure(left == children.significant_remaining, "significant children are counted")?;
        ensure(
            leaving == children.significant_stopping,
            "significant children that stop are counted",
        )?;
        let counts = machine.counts();
        ensure(counts.by_lifecycle == by_lifecycle, "children are counted by lifecycle")?;
        ensure(counts.specs() == specs, "children are counted")?;
        ensure(counts.supervisors == supervisors, "child supervisors are counted")?;
        self.check_waiting(machine)
    }

    fn check_timer(
        &self,
        machine: &Machine,
        key: Key,
        state: ChildState,
        view: &View,
    ) -> Result<(), Violation> {
        let at = machine.children().timers.at(Timer::Child(key));
        let broken = |what: &str| Err(format!("{}: {state:?} {what}", self.name(key)));
        let idle =
            matches!(state, ChildState::Down(_) | ChildState::Gated(_) | ChildState::AwaitingGroup);
        if state == ChildState::Active {
            self.check_watchdog(machine, key)?;
        }
        self.check_run_time(machine, key, state)?;
        if idle && at.is_some() {
            return broken("has no timer");
        }
        let limited = matches!(
            state,
            ChildState::Stopping { aborted: true, .. } | ChildState::AwaitingDecision { .. }
        );
        if limited && at.is_none() {
            return broken("has a timer");
        }
        let waits = matches!(state, ChildState::Backoff(_) | ChildState::AwaitingGroup);
        let next = view.history.as_ref().and_then(|history| history.next);
        if next.is_some() != waits {
            return broken("shows a next attempt if it waits for one");
        }
        // A supervisor that ends does not restart the child.
        let shown = next.map(|(at, _)| at);
        if matches!(state, ChildState::Backoff(_)) && at != shown && !(at.is_none() && self.ending)
        {
            return broken("waits for as long as it shows");
        }
        Ok(())
    }

    fn check_requirements(
        &self,
        machine: &Machine,
        key: Key,
        child: &ChildAccount,
    ) -> Result<(), Violation> {
        let children = machine.children();
        for name in &child.declaration.requires {
            let provider = self.key(name).and_then(|provider| children.state(provider));
            let Some(provider) = provider else { return Ok(()) };
            let met =
                matches!(provider, ChildState::Active | ChildState::Down(DownState::Finished));
            if !met {
                let lacks = children.requirements.lacks(key);
                ensure(lacks.is_some(), "a requirement is met by a child that is up")?;
            }
        }
        Ok(())
    }

    fn check_waiting(&self, machine: &Machine) -> Result<(), Violation> {
        let known = machine.children().callers.len();
        ensure(known == self.waiting.len(), "the machine knows every waiting caller")
    }
}

/// Whether a child in this state runs or will run again.
fn will_run(state: ChildState) -> bool {
    match state {
        ChildState::Down(down) => {
            matches!(down, DownState::New | DownState::Dormant | DownState::RestartsWithGroup)
        }
        ChildState::Gated(_)
        | ChildState::Activating
        | ChildState::Active
        | ChildState::Backoff(_)
        | ChildState::AwaitingGroup
        | ChildState::AwaitingDecision { .. }
        | ChildState::Stopping { .. } => true,
    }
}

fn is_leaving(state: ChildState) -> bool {
    match state {
        ChildState::Stopping { why: StopReason::Manual | StopReason::Removal, .. } => true,
        ChildState::Stopping { why: StopReason::Failing { then, .. }, .. } => {
            matches!(then, AfterFailing::StayDown | AfterFailing::Remove)
        }
        _ => false,
    }
}
