//! Values that change while the supervisor runs.
//!
//! The supervisor looks its values up again where a request says that they have changed, a bounded number
//! of children at a time. What follows from a change is up to the machine.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::requests::Call;
use super::state::Driver;
use crate::child::ChildId;
use crate::core::{Declaration, Key, MachineEvent};
use crate::policy::{ChildOptions, ChildRules, Layers};
use crate::runtime::blueprint::Blueprint;
use crate::runtime::request::{
    ChildFacts, FactsPage, Pending, Recode, Responder, Segment, Started, WhichChildren, respond,
};
use crate::runtime::watch;

/// How many children one request changes, or describes: few enough that it takes well under a
/// millisecond.
pub(crate) const CHILDREN: usize = 32;

impl Driver {
    /// Looks up the values of these children again. Answers with the place of the next one.
    pub(super) fn refresh(
        &mut self,
        which: WhichChildren,
        answer: Responder<Option<u64>>,
        now: Instant,
    ) {
        let (keys, next) = self.choose(which);
        for key in keys {
            if let Some(rules) = self.changed_rules(key) {
                self.change_child_rules(key, rules, now);
            }
        }
        respond(answer, Ok(next));
    }

    /// Looks up the values of one child again. Answers when it is down, if they take it out, or up, if they
    /// bring it back.
    pub(super) fn configure(
        &mut self,
        segment: &Segment,
        trial: bool,
        answer: Responder<Started>,
        now: Instant,
    ) {
        let found = self.children.find(segment);
        let Some((key, entry)) = found.and_then(|key| Some((key, self.children.entry(key)?)))
        else {
            return respond(answer, Err(self.not_found(segment)));
        };
        let child = entry.name();
        let changed = self.changed_rules(key);
        let Some(rules) = changed.or_else(|| self.machine.rules_of(key).cloned()) else { return };
        let ticket = self.calls.insert(Call {
            key,
            child,
            name: "configure",
            note: None,
            request: None,
            answer,
        });
        self.resize_mailbox(key, &rules);
        let rules = Declaration::ChildRules { ticket: Some(ticket), key, rules, trial };
        self.step(MachineEvent::Declared(rules), now);
    }

    /// Looks up the values of the supervisor again.
    pub(super) fn refresh_rules(&mut self, answer: Responder<bool>, now: Instant) {
        let old = std::mem::replace(&mut self.blueprint, self.shared.refresh_rules());
        let has_changed = !Arc::ptr_eq(&old.rules, &self.blueprint.rules);
        if has_changed {
            self.change_rules(now);
        }
        respond(answer, Ok(has_changed));
    }

    /// Does what has waited for the end of a group operation, or of a child.
    pub(super) fn settle_pending(&mut self, now: Instant) {
        let (ends, has_group) = (self.machine.is_ending(), self.machine.has_group());
        for pending in std::mem::take(&mut self.pending) {
            match pending {
                Pending::Recode(recode) if ends => {
                    respond(recode.answer, Err(self.shutting_down()))
                }
                Pending::Replacement { new, .. } if ends => {
                    respond(new.answer, Err(self.shutting_down()));
                }
                Pending::Recode(_) if has_group => self.pending.push(pending),
                Pending::Replacement { old, .. } if self.children.entry(old).is_some() => {
                    self.pending.push(pending);
                }
                Pending::Recode(recode) => self.recode(recode, now),
                Pending::Replacement { place, new, .. } => self.add_child(new, Some(place), now),
            }
        }
    }

    fn recode(&mut self, recode: Recode, now: Instant) {
        let Recode { blueprint, added, answer } = recode;
        // The caller has given up, and taken everything else back.
        if answer.is_closed() {
            return;
        }
        if let Some(blueprint) = blueprint {
            self.replace_code(&blueprint, &added, now);
        }
        respond(answer, Ok(()));
    }

    /// Replaces the code. Children keep their tasks, whose next incarnations have the new code. Children that the
    /// code doesn't have are kept, behind the others.
    fn replace_code(&mut self, blueprint: &Arc<Blueprint>, added: &[Segment], now: Instant) {
        let mut order = Vec::with_capacity(blueprint.children.len());
        let added: HashSet<_> = added.iter().map(String::as_str).collect();
        self.shared.set_blueprint(Arc::clone(blueprint));
        self.blueprint = self.shared.refresh_rules();
        self.change_rules(now);
        for spec in blueprint.children.iter() {
            let key = match self.children.find(spec.name()) {
                // It is the last resort, which has no code after it.
                Some(key)
                    if self.machine.rules_of(key).is_some_and(|it| it.spec.facts.is_fallback) =>
                {
                    key
                }
                Some(key) => {
                    self.children.replace(key, spec);
                    self.attachments.recoded(key, spec);
                    let rules = self.resolve(spec.name(), &spec.options);
                    self.change_child_rules(key, rules, now);
                    key
                }
                None if added.contains(spec.name()) => self.add(spec, None, now),
                None => continue,
            };
            order.push(key);
        }
        for spec in blueprint.children.iter() {
            if let Some(key) = self.children.find(spec.name()) {
                let links = self.links(spec);
                self.step(MachineEvent::Declared(Declaration::Links { key, links }), now);
            }
        }
        self.step(MachineEvent::Declared(Declaration::Order(order)), now);
    }

    fn change_child_rules(&mut self, key: Key, rules: Arc<ChildRules>, now: Instant) {
        self.resize_mailbox(key, &rules);
        let rules = Declaration::ChildRules { ticket: None, key, rules, trial: false };
        self.step(MachineEvent::Declared(rules), now);
    }

    /// Gives the mailbox of a child the capacity of its new rules.
    fn resize_mailbox(&self, key: Key, rules: &ChildRules) {
        if let Some(mailbox) = self.children.mailbox(key) {
            mailbox.set_capacity(ChildId::new(&self.shared, key), rules.mailbox_capacity);
        }
    }

    fn change_rules(&mut self, now: Instant) {
        self.step(MachineEvent::Declared(Declaration::Rules(self.shared.rules())), now);
    }

    /// Describes children.
    pub(super) fn facts(&self, which: WhichChildren, answer: Responder<FactsPage>) {
        let (keys, next) = self.choose(which);
        let children = keys.into_iter().filter_map(|key| {
            let entry = self.children.entry(key)?;
            let factory = &entry.factory;
            Some(ChildFacts {
                name: Arc::clone(factory.name()),
                serial: entry.serial,
                rules: Arc::clone(self.machine.rules_of(key)?),
                config: factory.config().cloned(),
                has_mailbox: factory.mailbox().is_some(),
            })
        });
        let children = children.collect();
        respond(answer, Ok(FactsPage { children, next }));
    }

    /// Returns the children that are meant, and the place of the next one.
    fn choose(&self, which: WhichChildren) -> (Vec<Key>, Option<u64>) {
        match which {
            WhichChildren::Named(names) => {
                (names.iter().filter_map(|name| self.children.find(name)).collect(), None)
            }
            WhichChildren::From(mut place) => {
                let mut keys = Vec::new();
                while keys.len() < CHILDREN
                    && let Some((key, behind)) = self.machine.next(place)
                {
                    keys.push(key);
                    place = behind;
                }
                (keys, self.machine.next(place).map(|_| place))
            }
        }
    }

    /// Returns the rules of a child as they are now, if they have changed.
    fn changed_rules(&mut self, key: Key) -> Option<Arc<ChildRules>> {
        let name = Arc::clone(self.children.entry(key)?.factory.name());
        let old = Arc::clone(self.machine.rules_of(key)?);
        let layers = self.shared.layers(&name, old.spec.awaits_config);
        let is_same = old.is_of(&old.spec, &self.blueprint.rules, &layers);
        (!is_same).then(|| self.resolve_with(&old.spec, layers))
    }

    /// Returns the rules of a new child, or of a child with new code.
    pub(super) fn resolve(&mut self, name: &str, spec: &Arc<ChildOptions>) -> Arc<ChildRules> {
        let layers = self.shared.layers(name, spec.awaits_config);
        self.resolve_with(spec, layers)
    }

    fn resolve_with(&self, spec: &Arc<ChildOptions>, layers: Layers) -> Arc<ChildRules> {
        let rules = self.shared.resolve(spec, &self.blueprint.rules, layers);
        if rules.is_bounded() || self.blueprint.rules.stop_deadline.is_some() {
            // The bounds are kept even while another child blocks the thread.
            watch::watch_bounds(&self.shared);
        }
        rules
    }
}
