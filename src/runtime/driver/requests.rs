//! Answering what handles ask.

use std::time::Instant;

use super::{Caller, Driver, PAGE};
use crate::child::ChildSpec;
use crate::core::{self, Event, Key, Machine};
use crate::error::{BuildError, ControlError, known};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::runtime::blueprint::kind;
use crate::runtime::request::{Answer, Page, Request, Started};
use crate::status::{ChildInfo, Counts, MailboxInfo, NextAttempt, SupervisorInfo};

impl<M: Machine> Driver<M> {
    pub(super) fn serve(&mut self, request: Request, now: Instant) {
        self.answered = true;
        match request {
            Request::Start { spec, answer } => self.start_child(&spec, answer, now),
            Request::Act { segment, call, request, answer } => match self.tasks.find(&segment) {
                Some(key) => self.ask(key, call, request, answer, now),
                None => drop(answer.send(Err(self.not_found(&segment)))),
            },
            Request::Which { segment, answer } => {
                let key = self.tasks.find(&segment);
                let info = key.and_then(|key| self.info(key, self.tasks.path(&self.hub, key), now));
                drop(answer.send(info.ok_or_else(|| self.not_found(&segment))));
            }
            Request::Spec { segment, answer } => {
                let key = self.tasks.find(&segment);
                let view = key.and_then(|key| self.machine.view(key, now));
                let blueprint = &self.hub.blueprint;
                let spec = view.map(|view| blueprint.describe(segment.clone(), &view.options));
                drop(answer.send(spec.ok_or_else(|| self.not_found(&segment))));
            }
            Request::Count { answer } => drop(answer.send(Ok(self.counts()))),
            Request::Page { place, answer } => drop(answer.send(Ok(self.page(place, now)))),
        }
    }

    fn not_found(&self, segment: &str) -> ControlError {
        ControlError::NotFound { path: self.hub.path().join(segment) }
    }

    fn ask(
        &mut self,
        key: Key,
        call: &'static str,
        request: core::Request,
        answer: Answer<Started>,
        now: Instant,
    ) {
        let Some(child) = self.tasks.name(key) else { return };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let mut asking = Some((ticket, Caller { child, call, answer }));
        self.step_for(&mut asking, Event::Request { ticket, key, request }, now);
        self.let_go(key);
        if let Some((ticket, caller)) = asking {
            self.callers.insert(ticket, caller);
        }
    }

    fn start_child(&mut self, spec: &ChildSpec, answer: Answer<Started>, now: Instant) {
        if let Err(error) = self.check_new(spec, now) {
            return drop(answer.send(Err(error)));
        }
        let key = self.add(spec, now);
        self.link(key, spec);
        self.ask(key, "start_child", core::Request::Start, answer, now);
    }

    /// What can only be checked among the children there are.
    fn check_new(&self, spec: &ChildSpec, now: Instant) -> Result<(), ControlError> {
        match self.machine.admits() {
            Ok(()) => {}
            Err(core::Answer::MaxChildren(max)) => return Err(self.max_children(max)),
            Err(_) => return Err(self.shutting_down()),
        }
        let path = || self.hub.path().join(spec.name());
        if let Some(owner) = spec.seed.mailbox().and_then(|mailbox| mailbox.bound_to()) {
            return Err(BuildError::MailboxTaken { path: path(), owner }.into());
        }
        if self.hub.blueprint.is_dynamic() {
            return Ok(());
        }
        if let Some(view) = self.tasks.find(spec.name()).and_then(|key| self.machine.view(key, now))
        {
            let state = view.lifecycle;
            return Err(match state {
                Lifecycle::Activating | Lifecycle::Active | Lifecycle::Deactivating => {
                    ControlError::AlreadyStarted { path: path() }
                }
                _ => ControlError::AlreadyPresent { path: path(), state },
            });
        }
        if let Some(name) = spec.requires.iter().find(|name| self.tasks.find(name).is_none()) {
            let parent = self.hub.path().clone();
            let known = self.known();
            let requirement = name.clone();
            let path = path();
            let error = BuildError::UnknownRequirement { path, parent, requirement, known };
            return Err(error.into());
        }
        if let Some(circle) = self.circle(spec) {
            let parent = self.hub.path().clone();
            return Err(BuildError::RequirementCycle { parent, cycle: circle }.into());
        }
        Ok(())
    }

    /// The circle that a new child would close, which others may require from before it was deleted.
    fn circle(&self, spec: &ChildSpec) -> Option<String> {
        let id = *self.required.get(spec.name())?;
        let keys: Vec<_> = spec.requires.iter().filter_map(|name| self.tasks.find(name)).collect();
        let chain = self.machine.chain_to(id, &keys)?;
        let entries = chain.into_iter().filter_map(|key| self.tasks.entry(key));
        let others = entries.map(|entry| &*entry.seed.name);
        let names = std::iter::once(spec.name()).chain(others).chain([spec.name()]);
        Some(names.collect::<Vec<_>>().join(" → "))
    }

    /// The names of the children there are, at most a line of them.
    fn known(&self) -> String {
        let next = |&(_, place): &(Key, u64)| self.machine.next(place);
        let keys = std::iter::successors(self.machine.next(0), next);
        let entries = keys.filter_map(|(key, _)| self.tasks.entry(key));
        let names = entries.map(|entry| &*entry.seed.name);
        known(names, self.machine.census().specs() as usize)
    }

    fn counts(&self) -> Counts {
        let census = self.machine.census();
        let active = [Lifecycle::Activating, Lifecycle::Active, Lifecycle::Deactivating];
        let supervisors = census.supervisors;
        Counts {
            specs: census.specs(),
            active: active.into_iter().map(|lifecycle| census.of(lifecycle)).sum(),
            restarting: census.of(Lifecycle::Restarting),
            supervisors,
            workers: census.specs() - supervisors,
        }
    }

    fn info(&self, key: Key, path: Path, now: Instant) -> Option<ChildInfo> {
        let view = self.machine.view(key, now)?;
        let history = view.history;
        let next = history.as_ref().and_then(|history| {
            let (at, delay) = history.next?;
            let remaining = at.saturating_duration_since(now);
            Some(NextAttempt { attempt: history.attempt, delay, remaining })
        });
        Some(ChildInfo {
            path,
            kind: kind(&view.options),
            restart: self.hub.blueprint.rules.restart(&view.options),
            policy: Some(self.hub.blueprint.policy(&view.options, view.policy)),
            significant: view.options.significant,
            lifecycle: view.lifecycle,
            why: view.why,
            incarnation: view.incarnation,
            restarts: view.incarnation.saturating_sub(1),
            since: self.hub.tree.wall(view.since),
            age: now.saturating_duration_since(view.since),
            failures: history.as_ref().map_or(0, |history| history.attempt),
            last_exit: history.and_then(|history| history.last),
            next,
            status: self.tasks.status(key),
            healthy: self.health.of(key),
            mailbox: self.mailbox(key).map(|mailbox| {
                let (len, capacity) = mailbox.load();
                MailboxInfo { len, capacity }
            }),
        })
    }

    fn page(&self, mut place: u64, now: Instant) -> Page {
        let seq = self.hub.tree.seq();
        let (restarts_in_period, max_restarts, period) = self.machine.intensity(now);
        let supervisor = SupervisorInfo {
            strategy: self.hub.blueprint.strategy(),
            restarts_in_period,
            max_restarts,
            period,
            on_child_failure: self.hub.blueprint.on_child_failure.is_some(),
            counts: self.counts(),
        };
        let mut entries = Vec::with_capacity(PAGE.min(supervisor.counts.specs as usize));
        while entries.len() < PAGE
            && let Some((key, behind)) = self.machine.next(place)
        {
            entries.extend(self.tasks.entry(key).map(|entry| (key, entry)));
            place = behind;
        }
        let mut children = Vec::with_capacity(entries.len());
        for (key, entry) in entries {
            let path = self.hub.path().child(&entry.seed.name, entry.serial);
            children.extend(self.info(key, path, now));
        }
        let next = self.machine.next(place).map(|_| place);
        Page { seq, supervisor, children, next }
    }
}
