//! What the status shows of the children.

use std::sync::Arc;
use std::time::Instant;

use super::state::Driver;
use super::view;
use crate::core::Key;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{ChildRules, EffectivePolicy, Places};
use crate::runtime::attach::{Gone, Step, StepView};
use crate::runtime::blueprint::kind;
use crate::runtime::children::ChildRecord;
use crate::runtime::request::Page;
use crate::status::{
    ChildInfo, ChildKind, GoneChild, LastExit, LimitUse, NextAttempt, StopInfo, SupervisorInfo,
};

/// How many children one answer describes.
///
/// Few enough that an answer delays the supervisor's loop for well under a millisecond.
const PAGE: usize = 32;

impl Driver {
    pub(super) fn info(&self, entry: &ChildRecord, now: Instant) -> Option<ChildInfo> {
        let key = entry.key;
        let view = self.machine.view(key, now)?;
        let path = self.shared.path().child(entry.factory.name(), entry.serial);
        let history = view.history;
        let wall_clock = |at| self.shared.tree.wall_clock(at);
        let next = history.as_ref().and_then(|history| {
            let (at, delay) = history.next?;
            let remaining = at.saturating_duration_since(now);
            Some(NextAttempt { attempt: history.attempt, at: wall_clock(at), delay, remaining })
        });
        let requires = self.requires(entry);
        let waits_for = match view.lifecycle {
            Lifecycle::Discovered => self.lacks(&requires),
            _ => Vec::new(),
        };
        let incarnation = self.children.incarnation(key);
        let kind = kind(&view.rules);
        let has_children = match kind {
            ChildKind::Supervisor => true,
            ChildKind::Worker => incarnation.is_some_and(|it| it.own_supervisor().is_some()),
        };
        let strategy = || {
            let blueprint = entry.factory.blueprint()?;
            let layer = self.shared.tree.settings.supervisor(|| path.clone());
            Some(blueprint.strategy_with(layer.as_deref()))
        };
        let strategy = if incarnation.is_none() { strategy() } else { None };
        let mut info = ChildInfo {
            kind,
            strategy,
            has_children,
            declared: entry.declared,
            defined_at: entry.factory.location(),
            version: view.rules.spec.version.clone(),
            restart: view.rules.restart_type(),
            configured: self.configured(entry, &view.rules, &path),
            policy: Some(EffectivePolicy::new(Arc::clone(&view.rules), view.policy)),
            significant: view.rules.spec.significant,
            essential: self.blueprint.is_essential(&view.rules.spec),
            ready: view.settled,
            lifecycle: view.lifecycle,
            why: view.why,
            incarnation: view.incarnation,
            restarts: view.incarnation.saturating_sub(1),
            since: wall_clock(view.since),
            age: now.saturating_duration_since(view.since),
            failures: history.as_ref().map_or(0, |history| history.attempt),
            long_polls: self.shared.tree.watch.long_polls(&path),
            busy: incarnation.and_then(|it| it.busy()).map(Box::new),
            limit: view.limit.map(|(intensity, restarts)| LimitUse {
                restarts,
                max_restarts: intensity.max(),
                period: intensity.period(),
                reached: restarts >= intensity.max() as usize,
            }),
            created_at: wall_clock(view.created),
            started_at: view.started.map(wall_clock),
            last_exit: history.and_then(|history| history.last).map(|last| LastExit {
                incarnation: last.incarnation,
                at: wall_clock(last.at),
                lived: last.lived,
                reason: last.reason,
            }),
            problem: None,
            requires,
            waits_for,
            awaits: incarnation.and_then(|it| it.cell.awaits()),
            held: view.held,
            stopping: None,
            last_call: None,
            next,
            status: incarnation.and_then(|it| it.status()).map(|it| it.to_string()),
            alarming: incarnation.and_then(|it| it.alarming()),
            healthy: None,
            path,
            lease: None,
            schedule: None,
            mailbox: None,
        };
        if view.lifecycle == Lifecycle::Deactivating {
            info.stopping = Some(Box::new(self.stopping(key)));
        }
        let step = Step::default();
        self.attachments.show(key, &view!(self, &step, now), &mut info);
        if let Some(property) = self.children.shown(key) {
            property.show(&mut info);
        }
        info.ready &= info.problem.is_none();
        Some(info)
    }

    /// Returns who has stopped a child, and when it is aborted.
    fn stopping(&self, key: Key) -> StopInfo {
        let ends = self.machine.abort_at(key).map(|at| self.shared.tree.wall_clock(at));
        match self.attachments.recent.stopper(key) {
            Some(note) => {
                StopInfo { ends, by: Some(Arc::clone(&note.by)), reason: note.reason.clone() }
            }
            None => StopInfo { ends, by: None, reason: self.shared.stop_reason() },
        }
    }

    /// Returns the siblings that a child requires.
    pub(super) fn requires(&self, entry: &ChildRecord) -> Arc<[String]> {
        match self.blueprint.is_dynamic() {
            true => Arc::default(),
            false => self.shared.required_by(entry.factory.name()),
        }
    }

    /// Returns which of these children aren't up.
    pub(super) fn lacks(&self, requires: &[String]) -> Vec<String> {
        let is_met = |name: &String| {
            self.children.find(name).is_some_and(|sibling| self.machine.is_met(sibling))
        };
        requires.iter().filter(|name| !is_met(name)).cloned().collect()
    }

    /// Returns where the values of a child come from that its code doesn't set.
    fn configured(&self, entry: &ChildRecord, rules: &ChildRules, path: &Path) -> Places {
        let mut places = rules.places();
        if entry.factory.config().is_some() {
            let place = self.shared.tree.settings.config_place(path);
            places.extend(place.map(|place| ("config", place)));
        }
        places
    }

    pub(super) fn page(&self, mut place: u64, now: Instant) -> Page {
        let seq = self.shared.tree.seq();
        let supervisor = (place == 0).then(|| Box::new(self.supervisor_info(now)));
        let mut entries = Vec::with_capacity(PAGE);
        while entries.len() < PAGE
            && let Some((key, behind)) = self.machine.next(place)
        {
            entries.extend(self.children.entry(key));
            place = behind;
        }
        let mut children = Vec::with_capacity(entries.len());
        for entry in entries {
            children.extend(self.info(entry, now));
        }
        let next = self.machine.next(place).map(|_| place);
        Page { seq, supervisor, children, next }
    }

    fn supervisor_info(&self, now: Instant) -> SupervisorInfo {
        let (restarts_in_period, max_restarts, period) = self.machine.intensity(now);
        SupervisorInfo {
            strategy: self.blueprint.strategy(),
            restarts_in_period,
            max_restarts,
            period,
            limit_reached: max_restarts.is_some_and(|max| restarts_in_period >= max as usize),
            child_limit: self.blueprint.child_limit(),
            min_ready: self.blueprint.rules.min_ready,
            lacks_active: self.machine.lacks_active(),
            on_child_failure: self.blueprint.on_child_failure.is_some(),
            configured: self.blueprint.rules.places(),
            counts: self.counts(),
            gone: self.gone_lately(now),
        }
    }

    fn gone_lately(&self, now: Instant) -> Vec<GoneChild> {
        let describe = |gone: &Gone| GoneChild {
            path: gone.child.under(self.shared.path()),
            incarnation: gone.incarnation,
            at: self.shared.tree.wall_clock(gone.at),
            lived: gone.exit.as_ref().and_then(|(_, lived)| *lived),
            reason: gone.exit.as_ref().map(|(reason, _)| Arc::clone(reason)),
        };
        self.attachments.recent.gone_lately(now).map(describe).collect()
    }
}
