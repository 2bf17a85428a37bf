//! What must be true of a machine between two events.
//!
//! Compares what was reported with what the machine shows and keeps. Knows nothing of how it came
//! to be so.
//!
//! # Invariants
//!
//! 1. The view of each child, and the census, are what was reported.
//! 2. Live and significant children are counted.
//! 3. Only what waits has a timer: a start that may time out, a backoff, an answer, a stop. An abort
//!    and an answer always have, and a backoff's is the one that is shown.
//! 4. A requirement is met by one who is there.
//! 5. The machine knows all who wait for an answer.

use std::sync::Arc;
use std::time::Instant;

use super::super::state::{Down, State, Timer, Why};
use super::super::{Key, Machine, View};
use super::{Broken, Child, Witness, ensure};

impl Witness {
    pub(super) fn check_counts(&self, machine: &Machine, now: Instant) -> Result<(), Broken> {
        let children = machine.children();
        let mut by_lifecycle = [0; 8];
        let (mut live, mut left, mut leaving, mut running) = (0, 0, 0, 0);
        let (mut specs, mut supervisors) = (0, 0);
        for (key, child) in self.present() {
            let state = children.state(key).expect("a child that was not forgotten");
            let view = machine.view(key, now).expect("a child that was not forgotten");
            by_lifecycle[child.lifecycle as usize] += 1;
            specs += 1;
            supervisors += u32::from(child.nature.options.supervisor.is_some());
            running += u32::from(child.live);
            let is_live =
                matches!(state, State::Activating | State::Active | State::Stopping { .. });
            live += u32::from(is_live);
            let significant = child.nature.options.significant;
            left += u32::from(significant && will_run(state));
            leaving += u32::from(significant && is_leaving(state));

            ensure(view.lifecycle == child.lifecycle, "the view is what was reported")?;
            ensure(view.since == child.since, "the view says since when")?;
            ensure(view.incarnation == child.incarnation, "the view has the incarnation")?;
            let options = machine.options(key).is_some_and(|it| Arc::ptr_eq(it, &view.options));
            ensure(options, "the view has the options that are looked up alone")?;
            self.check_timer(machine, key, state, &view)?;
            self.check_requirements(machine, key, child)?;
        }
        ensure(live == children.live && live == running, "live children are counted")?;
        ensure(left == children.significant_left, "significant children are counted")?;
        ensure(leaving == children.significant_leaving, "those that leave are counted")?;
        let counts = machine.counts();
        ensure(counts.by_lifecycle == by_lifecycle, "children are counted by lifecycle")?;
        ensure(counts.specs() == specs, "children are counted")?;
        ensure(counts.supervisors == supervisors, "those that are supervisors are counted")?;
        self.check_waiting(machine)
    }

    fn check_timer(
        &self,
        machine: &Machine,
        key: Key,
        state: State,
        view: &View,
    ) -> Result<(), Broken> {
        let at = machine.children().timers.at(Timer::Child(key));
        let broken = |what: &str| Err(format!("{}: {state:?} {what}", self.name(key)));
        let idle =
            matches!(state, State::Down(_) | State::Gated(_) | State::Active | State::Awaiting);
        if idle && at.is_some() {
            return broken("has no timer");
        }
        let limited = matches!(state, State::Stopping { aborted: true, .. } | State::Asking { .. });
        if limited && at.is_none() {
            return broken("has a timer");
        }
        let waits = matches!(state, State::Backoff | State::Awaiting);
        let next = view.history.as_ref().and_then(|history| history.next);
        if next.is_some() != waits {
            return broken("shows a next attempt if it waits for one");
        }
        // Whoever ends lets it pass.
        let shown = next.map(|(at, _)| at);
        if state == State::Backoff && at != shown && !(at.is_none() && self.ending) {
            return broken("waits for as long as it shows");
        }
        Ok(())
    }

    fn check_requirements(&self, machine: &Machine, key: Key, child: &Child) -> Result<(), Broken> {
        let children = machine.children();
        for name in &child.nature.requires {
            let provider = self.key(name).and_then(|provider| children.state(provider));
            let Some(provider) = provider else { return Ok(()) };
            let met = matches!(provider, State::Active | State::Down(Down::Finished));
            if !met {
                let lacks = children.requirements.lacks(key);
                ensure(lacks.is_some(), "a requirement is met by one who is there")?;
            }
        }
        Ok(())
    }

    fn check_waiting(&self, machine: &Machine) -> Result<(), Broken> {
        let known = machine.children().callers.len();
        ensure(known == self.waiting.len(), "the machine knows all who wait")
    }
}

/// Whether a child in this state runs or will run again.
fn will_run(state: State) -> bool {
    match state {
        State::Down(down) => matches!(down, Down::New | Down::Dormant | Down::ByGroup),
        State::Gated(_)
        | State::Activating
        | State::Active
        | State::Backoff
        | State::Awaiting
        | State::Asking { .. }
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
