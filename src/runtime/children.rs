//! The children of one supervisor: by key, by name, and with their tasks.
//!
//! Knows which task belongs to which child, and not why it is started or stopped.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::task::AbortHandle;

use super::blueprint::Blueprint;
use super::request::ChildName;
use super::shared::SupervisorShared;
use crate::child::{
    ChildFactory, ChildSpec, Incarnation, MailboxControl, Phases, ShownProperty, StopLevel, spawn,
    waits_for_thread,
};
use crate::core::{IncarnationNumber, Key, trim};
use crate::panic::catch_panic;
use crate::path::{Path, SerialName};
use crate::policy::StartCause;
use crate::properties::Properties;

/// A child, with or without a task.
#[derive(Debug)]
pub(super) struct ChildRecord {
    pub(super) key: Key,
    pub(super) factory: Arc<ChildFactory>,
    pub(super) serial: Option<NonZeroU64>,
    /// It is part of the tree as it was built.
    pub(super) declared: bool,
    /// What replaces the child when it fails too often.
    pub(super) fallback: Option<Arc<ChildSpec>>,
    /// It can run once.
    pub(super) once: bool,
    /// It has signalled its readiness in vain, which was logged.
    pub(super) told_ready: bool,
    running: Option<RunningTask>,
}

impl ChildRecord {
    pub(super) fn name(&self) -> ChildName {
        ChildName { name: Arc::clone(self.factory.name()), serial: self.serial }
    }
}

#[derive(Debug)]
struct RunningTask {
    incarnation: Arc<Incarnation>,
    /// Used to abort the task, which reports its exit itself.
    task: AbortHandle,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ChildTable {
    parent: Arc<SupervisorShared>,
    /// Indexed by key.
    entries: Vec<Option<ChildRecord>>,
    names: Names,
    properties: FxHashMap<Key, Properties>,
    /// The properties that the status shows.
    shown: FxHashMap<Key, Arc<dyn ShownProperty>>,
}

/// How the last name of a path finds its child.
#[derive(Debug)]
enum Names {
    Unique {
        declared: Arc<HashMap<Arc<str>, Key>>,
        added: HashMap<Arc<str>, Key>,
    },
    /// Names repeat under a dynamic supervisor, so each child has a serial number: `conn#17`.
    Numbered {
        keys: FxHashMap<NonZeroU64, Key>,
        next: NonZeroU64,
    },
}

impl ChildTable {
    pub(super) fn new(parent: Arc<SupervisorShared>, blueprint: &Blueprint) -> Self {
        let names = if blueprint.is_dynamic() {
            Names::Numbered { keys: FxHashMap::default(), next: NonZeroU64::MIN }
        } else {
            Names::Unique { declared: Arc::clone(&blueprint.keys), added: HashMap::new() }
        };
        let entries = Vec::with_capacity(blueprint.children.len());
        Self {
            parent,
            entries,
            names,
            properties: FxHashMap::default(),
            shown: FxHashMap::default(),
        }
    }

    /// Adds a declared child of a supervisor that isn't dynamic.
    pub(super) fn add_declared(&mut self, key: Key, spec: &ChildSpec) {
        self.insert(key, spec, None, true);
    }

    pub(super) fn add(&mut self, key: Key, spec: &ChildSpec) {
        let factory = &spec.factory;
        let serial = match &mut self.names {
            Names::Unique { added, .. } => {
                added.insert(Arc::clone(factory.name()), key);
                None
            }
            Names::Numbered { keys, next } => {
                let serial = *next;
                *next = serial.saturating_add(1);
                keys.insert(serial, key);
                Some(serial)
            }
        };
        self.insert(key, spec, serial, false);
    }

    fn insert(&mut self, key: Key, spec: &ChildSpec, serial: Option<NonZeroU64>, declared: bool) {
        let (factory, fallback) = (self.factory_of(spec), spec.fallback.clone());
        self.set_property_of(&factory, key);
        let (once, told_ready, running) = (spec.options.facts.once, false, None);
        let entry =
            ChildRecord { key, factory, serial, declared, fallback, once, told_ready, running };
        let place = key.index();
        if self.entries.len() <= place {
            self.entries.resize_with(place + 1, || None);
        }
        self.entries[place] = Some(entry);
    }

    /// Returns what the incarnations of a child are made with.
    fn factory_of(&self, spec: &ChildSpec) -> Arc<ChildFactory> {
        // Here and not where a spec is checked, because every child comes here, whoever adds it.
        #[cfg(feature = "testing")]
        if let Some(wrapper) = self.parent.tree.wrapper.get() {
            return wrapper.wrap(&spec.factory);
        }
        Arc::clone(&spec.factory)
    }

    /// Sets the property that the factory makes for each child, unless the child has it from a factory before.
    fn set_property_of(&mut self, factory: &ChildFactory, key: Key) {
        if let Some(property) = factory.property() {
            let shown = self.shown.entry(key).or_insert(property);
            self.properties.entry(key).or_default().add(Arc::clone(shown) as _);
        }
    }

    /// Makes the next incarnations of the child with a different factory of the same name.
    pub(super) fn replace(&mut self, key: Key, spec: &ChildSpec) {
        self.set_property_of(&spec.factory, key);
        let factory = self.factory_of(spec);
        if let Some(entry) = self.entry_mut(key) {
            entry.factory = factory;
            entry.fallback = spec.fallback.clone();
        }
    }

    /// Lets the child's fallback replace it.
    pub(super) fn fall_back(&mut self, key: Key) {
        if let Some(fallback) = self.entry_mut(key).and_then(|entry| entry.fallback.take()) {
            self.replace(key, &fallback);
        }
    }

    pub(super) fn remove(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(key.index()).and_then(Option::take) else { return };
        self.properties.remove(&key);
        self.shown.remove(&key);
        match (&mut self.names, entry.serial) {
            (Names::Unique { added, .. }, _) => drop(added.remove(entry.factory.name())),
            (Names::Numbered { keys, .. }, Some(serial)) => drop(keys.remove(&serial)),
            (Names::Numbered { .. }, None) => {}
        }
        trim(&mut self.entries, Option::is_none);
    }

    /// Returns the child with this last name of a path.
    pub(super) fn find(&self, segment: &str) -> Option<Key> {
        match &self.names {
            Names::Unique { declared, added } => {
                let mut keys = [declared.get(segment), added.get(segment)].into_iter().flatten();
                keys.find(|&&key| self.entry(key).is_some()).copied()
            }
            Names::Numbered { keys, .. } => {
                let SerialName { name, serial } = SerialName::parse(segment)?;
                let key = *keys.get(&serial)?;
                (**self.entry(key)?.factory.name() == *name).then_some(key)
            }
        }
    }

    pub(super) fn entry(&self, key: Key) -> Option<&ChildRecord> {
        let entry = self.entries.get(key.index())?.as_ref()?;
        if entry.key == key { Some(entry) } else { None }
    }

    pub(super) fn entry_mut(&mut self, key: Key) -> Option<&mut ChildRecord> {
        let entry = self.entries.get_mut(key.index())?.as_mut()?;
        if entry.key == key { Some(entry) } else { None }
    }

    fn running(&self, key: Key) -> Option<&RunningTask> {
        self.entry(key)?.running.as_ref()
    }

    /// Returns the path of the child, or that of the supervisor if the child is gone.
    pub(super) fn path(&self, key: Key) -> Path {
        let parent = self.parent.path();
        match self.entry(key) {
            Some(entry) => parent.child(entry.factory.name(), entry.serial),
            None => parent.clone(),
        }
    }

    /// Spawns the task of the child's next incarnation.
    pub(super) fn start(
        &mut self,
        key: Key,
        number: IncarnationNumber,
        cause: StartCause,
        watched: bool,
        phases: Phases,
    ) {
        let parent = Arc::clone(&self.parent);
        let properties = self.properties.get(&key).cloned();
        let Some(entry) = self.entry_mut(key) else { return };
        let incarnation = Arc::new(Incarnation::new(
            parent,
            Arc::clone(&entry.factory.identity),
            (key, entry.serial),
            number,
            cause,
            watched,
            properties,
        ));
        let task = spawn(&incarnation, &entry.factory, phases);
        entry.running = Some(RunningTask { incarnation, task });
    }

    /// Forgets the task of an incarnation that has exited.
    pub(super) fn exited(&mut self, key: Key, number: IncarnationNumber) {
        let Some(entry) = self.entry_mut(key) else { return };
        let exited = entry.running.take_if(|running| running.incarnation.number == number);
        // A waker that the child has left may panic while it is dropped.
        catch_panic(|| drop(exited));
    }

    /// Returns the incarnation that has a task.
    pub(super) fn incarnation(&self, key: Key) -> Option<&Arc<Incarnation>> {
        self.running(key).map(|running| &running.incarnation)
    }

    /// Whether this incarnation runs: its task has not ended, also not in a way that is yet to be handled.
    pub(super) fn runs(&self, key: Key, number: IncarnationNumber) -> bool {
        self.running(key).is_some_and(|running| {
            running.incarnation.number == number && !running.task.is_finished()
        })
    }

    /// Whether the child's task has not ended only because it waits for a thread that another child has blocked for so
    /// long, as far as that is known.
    pub(super) fn waits_for_thread(&self, key: Key, blocked: Duration) -> bool {
        self.running(key).is_some_and(|running| {
            !running.task.is_finished() && waits_for_thread(&running.incarnation, blocked)
        })
    }

    /// Returns all incarnations that have a task.
    pub(super) fn incarnations(&self) -> impl Iterator<Item = &Arc<Incarnation>> {
        let entries = self.entries.iter().flatten();
        entries.filter_map(|entry| Some(&entry.running.as_ref()?.incarnation))
    }

    pub(super) fn properties(&self, key: Key) -> Option<&Properties> {
        self.properties.get(&key)
    }

    /// Returns the property that the status of the child shows, if it has one.
    pub(super) fn shown(&self, key: Key) -> Option<&Arc<dyn ShownProperty>> {
        self.shown.get(&key)
    }

    /// Changes the properties of the child's next incarnations.
    pub(super) fn change_properties(&mut self, key: Key, changes: &Properties) {
        self.properties.entry(key).or_default().change(changes);
    }

    /// Returns the child's mailbox, if it has one.
    pub(super) fn mailbox(&self, key: Key) -> Option<&Arc<dyn MailboxControl>> {
        self.entry(key)?.factory.mailbox()
    }

    /// Returns the mailboxes of all children.
    pub(super) fn mailboxes(&self) -> impl Iterator<Item = (Key, &Arc<dyn MailboxControl>)> {
        let entries = self.entries.iter().flatten();
        entries.filter_map(|entry| Some((entry.key, entry.factory.mailbox()?)))
    }

    pub(super) fn cancel(&self, key: Key) {
        if let Some(incarnation) = self.incarnation(key) {
            incarnation.cell.raise(StopLevel::Cancel);
        }
    }

    /// Aborts the child's task.
    pub(super) fn abort(&self, key: Key) {
        if let Some(running) = self.running(key) {
            running.task.abort();
        }
    }

    /// Lets a child that is a supervisor cancel or abort everything below it, so that it can report leaks.
    pub(super) fn raise_below(&self, key: Key, level: StopLevel) {
        if let Some(incarnation) = self.incarnation(key) {
            incarnation.cell.raise(level);
        }
    }

    /// Aborts all tasks, the child that was added last first, and cancels the contexts that are left.
    pub(super) fn abort_all(&mut self) {
        for entry in self.entries.iter_mut().rev().flatten() {
            if let Some(running) = entry.running.take() {
                running.task.abort();
                running.incarnation.cancel_contexts();
            }
        }
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use crate::policy::Start;
    use crate::{ChildSpec, Context, ControlError, Supervisor, worker};

    fn child(number: usize) -> ChildSpec {
        worker(format!("child-{number}"), async |ctx: Context| ctx.cancelled().await)
    }

    #[tokio::test(start_paused = true)]
    async fn children_that_start_in_a_different_order_than_declared_are_found_by_name() {
        let first = child(0).requires("child-16");
        let app = Supervisor::builder("app").start(Start::Concurrent).child(first);
        let app = (1..17).map(child).fold(app, |app, child| app.child(child));
        let tree = app.build().unwrap().start().await.unwrap();
        for number in 0..17 {
            let found = tree.which_child(&format!("child-{number}")).await.unwrap();
            assert_eq!(found.path.name(), format!("child-{number}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_is_found_by_name_whether_declared_or_added() {
        let app = (0..3).map(child).fold(Supervisor::builder("app"), |app, child| app.child(child));
        let tree = app.build().unwrap().start().await.unwrap();
        for number in 3..6 {
            tree.start_child(child(number)).await.unwrap();
            for existing in 0..=number {
                let found = tree.which_child(&format!("child-{existing}")).await.unwrap();
                assert_eq!(found.path.name(), format!("child-{existing}"));
            }
            let again = tree.start_child(child(number)).await.unwrap_err();
            assert!(matches!(again, ControlError::NameTaken { running: true, .. }), "{again}");
        }
        for number in [0, 3, 5] {
            let name = format!("child-{number}");
            tree.stop_child(&name).await.unwrap();
            tree.otp().delete_child(&name).await.unwrap();
            let gone = tree.which_child(&name).await.unwrap_err();
            assert!(matches!(gone, ControlError::NotFound { .. }), "{gone}");
            tree.start_child(child(number)).await.unwrap();
        }
    }
}
