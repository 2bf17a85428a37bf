//! Checks each step of a lifecycle.

use std::time::SystemTime;

use verger::status::{Event, EventKind};
use verger::{ExitReason, Lifecycle};

use super::budget::{SLACK, Sure};
use super::edges::{is_legal, is_up};
use super::notes::Launch;
use super::{Seen, Watch, position, split};
use crate::tally::count;

impl Watch {
    /// Checks a step of a child.
    pub(super) fn moved(&mut self, event: &Event) {
        let EventKind::Moved { from, to, reason, .. } = &event.kind else { return };
        let (from, to) = (*from, *to);
        let path = event.path.as_str();
        let (parent, name) = split(path);
        let blind = self.blind;
        let Some(supervisor) = self.supervisors.get_mut(parent) else {
            return self.tally.violation(format!("{path}: an event of an unknown supervisor"));
        };
        let seen = supervisor.seen(name, blind).clone();
        if !is_legal(from, to) {
            self.tally.violation(format!("{path}: {from} became {to}"));
        }
        if let Some(state) = seen.state.filter(|&state| state != from) {
            self.tally.violation(format!("{path}: became {to} from {from}, but was {state}"));
        }
        let next = u32::from(to == Lifecycle::Activating);
        if let Some(last) = seen.incarnation.filter(|last| last + next != event.incarnation) {
            let incarnation = event.incarnation;
            let what = format!("{path}: {to} in incarnation {incarnation} after {last}");
            self.tally.violation(what);
        }
        if let Some(reason) = reason {
            self.ended(event, reason);
        }
        let mut seen = seen;
        match (from, to) {
            (_, Lifecycle::Errored) => {
                seen.was_active = Some(from == Lifecycle::Active);
                seen.is_bug = reason.as_ref().is_some_and(|it| {
                    matches!(**it, ExitReason::Escalated { .. } | ExitReason::Panicked(_))
                });
                seen.gave_up = false;
            }
            (_, Lifecycle::Deactivating) => {
                seen.was_active = Some(from == Lifecycle::Active);
                seen.is_bug = false;
            }
            (_, Lifecycle::Restarting) => self.granted(event, &mut seen),
            (Lifecycle::Errored, Lifecycle::Resolved) if !seen.gave_up => {
                self.granted(event, &mut seen);
            }
            (Lifecycle::Restarting, Lifecycle::Resolved) => self.waited(event, &seen),
            (_, Lifecycle::Activating) => self.launched(event),
            (_, Lifecycle::Active) => self.activated(event),
            _ => {}
        }
        if from == Lifecycle::Errored {
            seen.gave_up = false;
        }
        self.confirm(path, event.incarnation, to);
        seen.state = Some(to);
        seen.incarnation = Some(event.incarnation);
        seen.since = Some(event.at);
        if let Some(supervisor) = self.supervisors.get_mut(parent) {
            *supervisor.seen(name, blind) = seen;
        }
    }

    /// Checks that the reported exit reason matches the incarnation's own notes.
    fn ended(&self, event: &Event, reason: &ExitReason) {
        let path = event.path.as_str();
        if self.plan.supervisors.contains_key(path) {
            return;
        }
        let by = self.clock.instant(event.at) + SLACK;
        let mut lives = self.lives.at(path, event.incarnation, by).peekable();
        let (kind, last) = (reason.kind(), lives.peek().copied());
        if let Some(life) = last.filter(|_| !lives.any(|life| life.may_end_as(kind))) {
            self.tally.violation(format!("{path}: ended as {kind}, but was {life:?}"));
        }
    }

    /// Checks a granted restart against the limit.
    fn granted(&mut self, event: &Event, seen: &mut Seen) {
        let EventKind::Moved { wait, .. } = &event.kind else { return };
        let path = event.path.as_str();
        let Some(supervisor) = self.supervisors.get_mut(split(path).0) else { return };
        let rules = supervisor.rules;
        let delay = wait.map(|(_, delay)| delay);
        let always = rules.charges_all
            || rules.max == Some(0)
            || seen.is_bug
            || delay.map_or(rules.at_once, |delay| delay.is_zero());
        let charged = if always { Some(true) } else { seen.was_active };
        seen.wait = seen.since.zip(delay);
        count(&self.tally.grants);
        let granted = match charged {
            Some(false) => Ok(Sure::Yes),
            Some(true) => supervisor.budget.grant(event.at, true),
            None => supervisor.budget.grant(event.at, false),
        };
        self.decided(path, granted);
    }

    /// Checks a supervisor that gave up on a child.
    pub(super) fn gave_up(&mut self, event: &Event) {
        let path = event.path.as_str();
        let (parent, name) = split(path);
        let blind = self.blind;
        let Some(supervisor) = self.supervisors.get_mut(parent) else { return };
        let rules = supervisor.rules;
        let seen = supervisor.seen(name, blind);
        seen.gave_up = true;
        let was_active = seen.was_active;
        // There, a failed first start ends the supervisor, whatever its limit.
        if rules.fails_first && was_active != Some(true) {
            return;
        }
        count(&self.tally.refusals);
        let free = was_active == Some(false)
            && !(rules.charges_all || rules.at_once || rules.max == Some(0) || seen.is_bug);
        let refused = if free {
            Err("given up for a failure that is free".to_owned())
        } else {
            supervisor.budget.refuse(event.at)
        };
        self.decided(path, refused);
    }

    fn decided(&self, path: &str, decision: Result<Sure, String>) {
        match decision {
            Ok(Sure::Yes) => {}
            Ok(Sure::No) => count(&self.tally.doubts),
            Err(what) => self.tally.violation(format!("{path}: {what}")),
        }
    }

    /// Checks that a backoff took as long as announced.
    fn waited(&self, event: &Event, seen: &Seen) {
        let path = event.path.as_str();
        let Some(supervisor) = self.supervisors.get(split(path).0) else { return };
        let Some((from, delay)) = seen.wait else { return };
        if event.at < from + delay && !supervisor.was_woken(from, event.at) {
            let waited = event.at.duration_since(from).unwrap_or_default();
            self.tally.violation(format!("{path}: waited {waited:?} of {delay:?}"));
        }
    }

    /// Checks that a child has noted that it is ready before it becomes active.
    fn activated(&self, event: &Event) {
        let path = event.path.as_str();
        let by = self.clock.instant(event.at) + SLACK;
        let mut lives = self.lives.at(path, event.incarnation, by).peekable();
        let last = lives.peek().copied();
        if let Some(life) = last.filter(|_| lives.all(|life| life.signals && !life.ready)) {
            self.tally.violation(format!("{path}: active, but was {life:?}"));
        }
    }

    /// Checks the start of an incarnation.
    fn launched(&mut self, event: &Event) {
        let path = event.path.as_str();
        // A life that began before this instant is an older one.
        let before = event.at - SLACK;
        if self.plan.supervisors.contains_key(path) {
            return self.supervisor_launched(path, event.at, before);
        }
        for life in self.lives.living_of(path) {
            let older = life.incarnation != event.incarnation;
            let leak = (path.to_owned(), life.incarnation);
            if older && self.clock.wall(life.begun) < before && !self.leaks.contains(&leak) {
                let (new, old) = (event.incarnation, life.incarnation);
                let what = format!("{path}: incarnation {new} started while {old} lives");
                self.tally.violation(what);
            }
        }
        self.lacks(path);
        self.out_of_turn(event);
    }

    /// Checks that nothing below a supervisor is alive when it starts.
    fn supervisor_launched(&mut self, path: &str, at: SystemTime, before: SystemTime) {
        let below = |parent: &str| {
            parent.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for (parent, supervisor) in &mut self.supervisors {
            if !below(parent) {
                continue;
            }
            for (name, seen) in supervisor.children.drain() {
                if let Some(state) = seen.state.filter(|&state| is_up(state)) {
                    let what = format!("{path}: started again while {parent}/{name} is {state}");
                    self.tally.violation(what);
                }
            }
            supervisor.began = at;
            supervisor.budget.reset();
        }
        for parent in self.lives.populated().filter(|parent| below(parent)) {
            for (name, life) in self.lives.living_below(parent) {
                let child = format!("{parent}/{name}");
                if self.clock.wall(life.begun) < before
                    && !self.leaks.contains(&(child.clone(), life.incarnation))
                {
                    let what = format!("{path}: started again while {child} lives");
                    self.tally.violation(what);
                }
            }
        }
    }

    /// Checks that the requirements of a child are met when it starts.
    fn lacks(&self, path: &str) {
        let Some(required) = self.plan.requires.get(path) else { return };
        let Some(supervisor) = self.supervisors.get(split(path).0) else { return };
        let state = match supervisor.children.get(required) {
            Some(seen) => seen.state,
            None if self.blind => None,
            None => Some(Lifecycle::Discovered),
        };
        if let Some(state) = state.filter(|&state| state != Lifecycle::Active) {
            self.tally.violation(format!("{path}: started while {required} is {state}"));
        }
    }

    /// Records a start that would violate the start order if it was part of an ordered start.
    fn out_of_turn(&mut self, event: &Event) {
        let path = event.path.as_str();
        let (parent, name) = split(path);
        let Some(supervisor) = self.supervisors.get(parent) else { return };
        let rules = supervisor.rules;
        if !rules.sequential || self.plan.requires.contains_key(path) {
            return;
        }
        let mine = position(name);
        for (sibling, seen) in &supervisor.children {
            let earlier = position(sibling) < mine;
            // The order passes a child whose requirement a call has stopped, and the child starts once that is back.
            let gated = || self.plan.requires.contains_key(&format!("{parent}/{sibling}"));
            let wrong = match seen.state {
                Some(Lifecycle::Activating) => sibling != name && !(earlier && gated()),
                Some(Lifecycle::Active) => !earlier && sibling != name,
                _ => false,
            };
            if let Some(incarnation) = seen.incarnation.filter(|_| wrong) {
                self.launches.push(Launch {
                    path: path.to_owned(),
                    incarnation: event.incarnation,
                    at: self.clock.instant(event.at),
                    since: self.clock.instant(supervisor.began) - SLACK,
                    sibling: format!("{parent}/{sibling}"),
                    sibling_incarnation: incarnation,
                    earlier,
                    grouped: rules.grouped,
                });
            }
        }
    }
}
