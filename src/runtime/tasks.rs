//! The tasks of one supervisor's children: by key, and by the name a caller uses.
//!
//! Knows which task belongs to which child and nothing of why it is started or stopped.

use std::num::NonZeroU64;
use std::sync::Arc;

use foldhash::HashMap;
use tokio::task::JoinHandle;

use super::blueprint::{Blueprint, FEW};
use super::few::Few;
use super::hub::Hub;
use super::request::ChildName;
use super::room::make_room;
use super::trace;
use crate::child::{Context, NextRun, Parent, Plan, Rest, Run, Seed, Spawned, StopLevel};
use crate::core::{Incarnation, Key, Order, trim};
use crate::mailbox::MailboxControl;
use crate::path::Path;
use crate::policy::{ChildOptions, RestartType, Rules, Shutdown, StartCause};
use crate::properties::Properties;

/// A child, with or without a task.
#[derive(Debug)]
pub(super) struct Entry {
    key: Key,
    pub(super) seed: Arc<Seed>,
    pub(super) serial: Option<NonZeroU64>,
    task: Option<Task>,
}

#[derive(Debug)]
pub(super) struct Task {
    run: Arc<Run>,
    /// Nobody joins it: the task says itself how it ended. It is kept as it came, because a handle
    /// that can only abort would be one more.
    handle: JoinHandle<()>,
}

impl Task {
    fn abort(&self) {
        self.run.expect_no_return();
        self.handle.abort();
    }

    /// Its child is over. Whether it is there for another run.
    fn stays(&self) -> bool {
        let rest = self.run.rest();
        if rest == Rest::InVain {
            self.handle.abort();
        }
        rest == Rest::Waits
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Tasks {
    parent: Arc<Arc<dyn Parent>>,
    blueprint: Arc<Blueprint>,
    entries: Vec<Option<Entry>>,
    names: Names,
    /// Whether any child has ever had a mailbox. Mostly none has, and to ask the recipe of a child,
    /// as is done several times until it has ended, takes 60 instructions.
    lends: bool,
    /// Of the few children that have any.
    properties: Few<Key, Properties>,
    guest: Guest,
}

/// The task of a child that takes the supervisor's turn.
#[derive(Debug, Default)]
enum Guest {
    #[default]
    Nobody,
    /// With the run that is over: a child that has leaked may have a task besides.
    Here(Key, Incarnation),
    /// It goes on with this.
    Served(NextRun),
}

impl Guest {
    /// # Errors
    ///
    /// Gives it back if this is not the task of the run that is over.
    fn serve(&mut self, over: &Run, next: NextRun) -> Result<(), NextRun> {
        if !self.is(over) {
            return Err(next);
        }
        *self = Self::Served(next);
        Ok(())
    }

    /// Whether it is the task of that run, which is over.
    fn is(&self, over: &Run) -> bool {
        let Self::Here(key, incarnation) = *self else { return false };
        (key, incarnation) == (over.key, over.incarnation()) && over.rests()
    }
}

/// How a part of a path finds its child.
#[derive(Debug)]
enum Names {
    /// Of at most [`FEW`], which are looked through.
    Few,
    /// Those that the blueprint doesn't know. To put all that were declared into a table at each start
    /// was a tenth of it.
    Unique(Box<HashMap<Arc<str>, Key>>),
    /// Names repeat, so each child has a number besides: `conn#17`.
    Numbered(Box<Numbers>),
}

#[derive(Debug)]
struct Numbers {
    keys: Order,
    next: NonZeroU64,
}

impl Tasks {
    /// For the children of this blueprint at first.
    pub(super) fn new(parent: Arc<dyn Parent>, blueprint: &Arc<Blueprint>) -> Self {
        let children = blueprint.children.len();
        let names = if blueprint.is_dynamic() {
            Names::Numbered(Box::new(Numbers { keys: Order::default(), next: NonZeroU64::MIN }))
        } else if children <= FEW {
            Names::Few
        } else {
            Names::Unique(Box::default())
        };
        Self {
            parent: Arc::new(parent),
            blueprint: Arc::clone(blueprint),
            entries: Vec::with_capacity(children),
            names,
            lends: false,
            properties: Few::default(),
            guest: Guest::Nobody,
        }
    }

    /// In this turn, the child's task waits here for its next run.
    pub(super) fn receive(&mut self, child: Option<(Key, Incarnation)>) {
        self.guest = child.map_or(Guest::Nobody, |(key, over)| Guest::Here(key, over));
    }

    /// The turn is over. Returns the run that the task goes on with.
    pub(super) fn see_off(&mut self) -> Option<NextRun> {
        match std::mem::take(&mut self.guest) {
            Guest::Served(next) => Some(next),
            Guest::Nobody | Guest::Here(..) => None,
        }
    }

    /// `lends`: the seed has a mailbox.
    pub(super) fn add(&mut self, key: Key, seed: Arc<Seed>, lends: bool) {
        self.lends |= lends;
        if matches!(self.names, Names::Few) && self.entries.len() >= FEW {
            let entries = self.entries.iter().flatten();
            let names = entries.map(|entry| (Arc::clone(&entry.seed.name), entry.key));
            self.names = Names::Unique(Box::new(names.collect()));
        }
        let serial = match &mut self.names {
            Names::Unique(keys) if !self.blueprint.declares(key) => {
                keys.insert(Arc::clone(&seed.name), key);
                None
            }
            Names::Few | Names::Unique(_) => None,
            Names::Numbered(numbers) => {
                let serial = numbers.next;
                numbers.next = serial.saturating_add(1);
                numbers.keys.insert(serial.get(), key);
                Some(serial)
            }
        };
        if self.entries.len() <= key.index() {
            self.entries.resize_with(key.index() + 1, || None);
        }
        self.entries[key.index()] = Some(Entry { key, seed, serial, task: None });
    }

    /// The child is made from another seed of the same name from now on.
    pub(super) fn replace(&mut self, key: Key, seed: Arc<Seed>, lends: bool) {
        self.lends |= lends;
        if let Some(entry) = self.entry_mut(key) {
            entry.seed = seed;
            // It would begin what it was made for.
            if let Some(task) = entry.task.take_if(|task| task.run.rests()) {
                task.handle.abort();
            }
        }
    }

    pub(super) fn remove(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(key.index()).and_then(Option::take) else { return };
        self.properties.remove(&key);
        if let Some(task) = entry.task.filter(|task| task.run.rests()) {
            task.handle.abort();
        }
        match (&mut self.names, entry.serial) {
            (Names::Numbered(numbers), Some(serial)) => numbers.keys.remove(serial.get()),
            (Names::Unique(keys), _) => drop(keys.remove(&entry.seed.name)),
            (Names::Few, _) | (Names::Numbered(_), None) => {}
        }
        trim(&mut self.entries, Option::is_none);
    }

    /// The child that the last part of a path names.
    pub(super) fn find(&self, segment: &str) -> Option<Key> {
        match &self.names {
            Names::Few => {
                let mut entries = self.entries.iter().flatten();
                entries.find(|entry| &*entry.seed.name == segment).map(|entry| entry.key)
            }
            Names::Unique(keys) => {
                let key = keys.get(segment).or_else(|| self.blueprint.keys.get(segment))?;
                // One that was declared may be gone.
                self.entry(*key).map(|entry| entry.key)
            }
            Names::Numbered(numbers) => {
                let (name, serial) = segment.rsplit_once('#')?;
                // One way to write it, so that a path is a name: not `conn#007`, nor `conn#+7`.
                let serial =
                    Some(serial).filter(|it| it.starts_with(|c| matches!(c, '1'..='9')))?;
                let key = numbers.keys.get(serial.parse().ok()?)?;
                (&*self.entry(key)?.seed.name == name).then_some(key)
            }
        }
    }

    pub(super) fn entry(&self, key: Key) -> Option<&Entry> {
        self.entries.get(key.index())?.as_ref().filter(|entry| entry.key == key)
    }

    fn entry_mut(&mut self, key: Key) -> Option<&mut Entry> {
        entry_of(&mut self.entries, key)
    }

    fn task(&self, key: Key) -> Option<&Task> {
        self.entry(key)?.task.as_ref().filter(|task| !task.run.rests())
    }

    pub(super) fn path(&self, hub: &Hub, key: Key) -> Path {
        self.name(key).map_or_else(|| hub.path().clone(), |name| name.under(hub.path()))
    }

    pub(super) fn name(&self, key: Key) -> Option<ChildName> {
        let entry = self.entry(key)?;
        Some(ChildName { name: Arc::clone(&entry.seed.name), serial: entry.serial })
    }

    /// Spawns the task of the child's next incarnation.
    pub(super) fn start(
        &mut self,
        key: Key,
        incarnation: Incarnation,
        cause: StartCause,
        rules: &Rules,
        options: &ChildOptions,
    ) {
        let properties = self.properties.get(&key).cloned();
        let guest = &mut self.guest;
        let Some(entry) = entry_of(&mut self.entries, key) else { return };
        let returns = rules.restart(options) != RestartType::Temporary;
        let again = entry
            .task
            .as_ref()
            .map(|task| &task.run)
            .filter(|run| guest.is(run) && run.again(&entry.seed, incarnation, cause, returns));
        let is_again = again.is_some();
        let run = again.cloned().unwrap_or_else(|| {
            let (parent, seed) = (Arc::clone(&self.parent), Arc::clone(&entry.seed));
            let run = Run::new(parent, seed, key, entry.serial, incarnation, cause, returns);
            Arc::new(run)
        });
        if let Some(properties) = properties {
            run.set_properties(properties);
        }
        let span = tracing::info_span!(
            target: "verger::child",
            parent: None,
            "child",
            path = %run.path(),
            incarnation,
        );
        if let Some(span) = trace::boxed(span) {
            run.set_span(span);
        }
        if is_again {
            *guest = Guest::Served(NextRun::new(run));
            return;
        }
        if let Some(task) = entry.task.as_mut().filter(|task| task.run.rests()) {
            let next = NextRun::new(Arc::clone(&run));
            let served = guest.serve(&task.run, next);
            let served = served.or_else(|next| task.run.hand_over(next));
            let Err(mut back) = served else {
                task.run = run;
                return;
            };
            // It begins in another task.
            drop(back.begin());
        }
        make_room(options.supervisor.is_some());
        #[expect(clippy::disallowed_methods, reason = "this is the one place that starts tasks")]
        let handle = tokio::spawn(Spawned::new(Arc::clone(&run), || plan(rules, options)));
        entry.task = Some(Task { run, handle });
    }

    pub(super) fn properties(&self, key: Key) -> Option<&Properties> {
        self.properties.get(&key)
    }

    /// Gives the child properties, which its next incarnations will have.
    pub(super) fn change(&mut self, key: Key, changes: &Properties) {
        self.properties.or_default(key).change(changes);
    }

    /// The child's mailbox, if it has one.
    pub(super) fn mailbox(&self, key: Key) -> Option<Arc<dyn MailboxControl>> {
        if !self.lends {
            return None;
        }
        self.entry(key)?.seed.mailbox()
    }

    /// All mailboxes.
    pub(super) fn mailboxes(&self) -> impl Iterator<Item = (Key, Arc<dyn MailboxControl>)> {
        let entries = self.entries.iter().filter(|_| self.lends).flatten();
        entries.filter_map(|entry| Some((entry.key, entry.seed.mailbox()?)))
    }

    /// A child is about to be asked to stop for good.
    pub(super) fn dismiss(&self, key: Key) {
        if let Some(task) = self.task(key) {
            task.run.dismiss();
        }
    }

    /// A child is about to be asked to stop because it has failed.
    pub(super) fn blame(&self, key: Key) {
        if let Some(task) = self.task(key) {
            task.run.blame();
        }
    }

    /// Whether the child that has a task was asked to stop.
    pub(super) fn is_asked(&self, key: Key) -> Option<bool> {
        self.task(key).map(|task| task.run.level() > StopLevel::None)
    }

    /// The run of a child that somebody else is about to ask to stop, for good unless it `returns`. Not
    /// one with a mailbox, which is to hear of it before.
    pub(super) fn to_be_asked(&self, key: Key, returns: bool) -> Option<Arc<Run>> {
        let task = self.task(key).filter(|_| self.mailbox(key).is_none())?;
        // One whose task is over needs nobody. Most aren't, but whoever wakes the task from another
        // thread needn't wait for memory when this one has looked at it: a tenth of an ordered stop.
        if task.handle.is_finished() {
            return None;
        }
        if !returns {
            task.run.expect_no_return();
        }
        Some(Arc::clone(&task.run))
    }

    /// Asks a child to stop, for good unless it `returns`.
    pub(super) fn cancel(&self, key: Key, returns: bool) {
        if let Some(task) = self.task(key) {
            if !returns {
                task.run.expect_no_return();
            }
            task.run.stop(StopLevel::Cancel);
        }
    }

    /// Aborts a child. A supervisor is asked to abort what is below it, so that it can tell what
    /// has leaked there.
    pub(super) fn abort(&self, key: Key, supervisor: bool) {
        let Some(task) = self.task(key) else { return };
        if supervisor {
            task.run.expect_no_return();
            task.run.stop(StopLevel::Abort);
        } else {
            task.abort();
        }
    }

    /// Aborts the task itself, whatever it is.
    pub(super) fn abort_task(&self, key: Key) {
        if let Some(task) = self.task(key) {
            task.abort();
        }
    }

    /// The child has ended. What is left of its task, unless that waits for the next incarnation,
    /// can be dropped when there is time.
    pub(super) fn ended(&mut self, key: Key, incarnation: Incarnation) -> Option<Task> {
        let task = &mut self.entry_mut(key)?.task;
        task.take_if(|task| task.run.incarnation() == incarnation && !task.stays())
    }

    /// Whether there is a task of the child's that waits for another run.
    pub(super) fn rests(&self, key: Key) -> bool {
        self.entry(key).and_then(|entry| entry.task.as_ref()).is_some_and(|task| task.run.rests())
    }

    /// There will be no other run for the task that waits for one.
    pub(super) fn let_go(&mut self, key: Key) {
        let Some(entry) = self.entry_mut(key) else { return };
        if let Some(task) = entry.task.take_if(|task| task.run.rests()) {
            task.handle.abort();
        }
    }

    /// Which incarnation of the child has a task.
    pub(super) fn runs(&self, key: Key) -> Option<Incarnation> {
        self.task(key).map(|task| task.run.incarnation())
    }

    /// Who has a task.
    pub(super) fn running(&self) -> impl Iterator<Item = (Key, Incarnation)> {
        let entries = self.entries.iter().flatten();
        let tasks = entries.filter_map(|entry| Some((entry.key, entry.task.as_ref()?)));
        tasks.filter(|(_, task)| !task.run.rests()).map(|(key, task)| (key, task.run.incarnation()))
    }

    /// What the incarnation was handed that has a task.
    pub(super) fn context(&self, key: Key) -> Option<Context> {
        self.task(key).map(|task| Context::new(Arc::clone(&task.run)))
    }

    /// Why the child's task was started.
    pub(super) fn cause(&self, key: Key) -> Option<StartCause> {
        self.task(key).map(|task| task.run.cause)
    }

    /// What the child says of itself.
    pub(super) fn status(&self, key: Key) -> Option<String> {
        self.task(key)?.run.status().map(|text| text.to_string())
    }

    /// Aborts whatever runs, the child that was added last first, and asks whoever else has a child's
    /// context to stop: when the task is gone, it can't tell any more that there is somebody.
    pub(super) fn abort_everything(&mut self) {
        for entry in self.entries.iter_mut().rev().flatten() {
            if let Some(task) = entry.task.take() {
                task.handle.abort();
                task.run.stop_others();
            }
        }
    }
}

fn entry_of(entries: &mut [Option<Entry>], key: Key) -> Option<&mut Entry> {
    entries.get_mut(key.index())?.as_mut().filter(|entry| entry.key == key)
}

fn plan(rules: &Rules, options: &ChildOptions) -> Plan {
    let grace = match rules.shutdown(options) {
        Shutdown::Timeout(grace) if options.supervisor.is_none() => Some(grace),
        _ => None,
    };
    Plan { announces: !options.signals_itself, grace }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Guest};
    use crate::child::{NextRun, alone};
    use crate::core::Key;
    use crate::{ChildSpec, Context, ControlError, Start, Supervisor, worker};

    #[test]
    fn whoever_takes_the_turn_is_handed_the_next_run_of_his_own_child_and_one() {
        let next = || NextRun::new(alone::run(3));
        let (own, earlier) = (alone::run(2), alone::run(1));
        let (key, other) = (own.key, Key::of_number(7));
        assert!(Guest::Here(key, 2).serve(&own, next()).is_err(), "it is not known to be over");
        own.rest();
        earlier.rest();
        assert!(Guest::Nobody.serve(&own, next()).is_err());
        assert!(Guest::Here(other, 2).serve(&own, next()).is_err());

        let mut guest = Guest::Here(key, 2);
        assert!(guest.serve(&earlier, next()).is_err(), "another task of the child's waits");
        assert!(guest.serve(&own, next()).is_ok());
        assert!(guest.serve(&own, next()).is_err());
        let Guest::Served(mut next) = guest else { panic!("it was served") };
        assert!(next.begin().is_some_and(|run| run.incarnation() == 3));
    }

    fn child(number: usize) -> ChildSpec {
        worker(format!("child-{number}"), async |ctx: Context| ctx.cancelled().await)
    }

    #[tokio::test(start_paused = true)]
    async fn children_that_start_in_another_order_than_they_were_declared_are_found_by_their_names()
    {
        for declared in [FEW, FEW + 1] {
            let last = format!("child-{}", declared - 1);
            let first = child(0).requires(&last);
            let app = Supervisor::builder("app").start(Start::Concurrent).child(first);
            let app = (1..declared).map(child).fold(app, |app, child| app.child(child));
            let tree = app.build().unwrap().start().await.unwrap();
            for number in 0..declared {
                let found = tree.which_child(&format!("child-{number}")).await.unwrap();
                assert_eq!(found.path.name(), format!("child-{number}"));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_is_found_by_its_name_among_few_and_among_many() {
        for declared in [3, FEW, FEW + 1] {
            let app = (0..declared)
                .map(child)
                .fold(Supervisor::builder("app"), |app, child| app.child(child));
            let tree = app.build().unwrap().start().await.unwrap();
            for number in declared..2 * FEW {
                tree.start_child(child(number)).await.unwrap();
                for there in 0..=number {
                    let found = tree.which_child(&format!("child-{there}")).await.unwrap();
                    assert_eq!(found.path.name(), format!("child-{there}"));
                }
                let again = tree.start_child(child(number)).await.unwrap_err();
                assert!(matches!(again, ControlError::AlreadyStarted { .. }), "{again}");
            }
            for number in [0, FEW, 2 * FEW - 1] {
                let name = format!("child-{number}");
                tree.terminate_child(&name).await.unwrap();
                tree.delete_child(&name).await.unwrap();
                let gone = tree.which_child(&name).await.unwrap_err();
                assert!(matches!(gone, ControlError::NotFound { .. }), "{gone}");
                tree.start_child(child(number)).await.unwrap();
            }
        }
    }
}
