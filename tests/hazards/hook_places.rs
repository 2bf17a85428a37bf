//! The places where this crate calls code of the user's, and what a probe does at one of them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use verger::dead_letter::DeadLetterStore;
use verger::mailbox::{Address, Reply};
use verger::{Context, SupervisorHandle};

macro_rules! places {
    ($($place:ident),+ $(,)?) => {
        /// A place where this crate calls code of the user's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Place { $($place),+ }

        pub(crate) const PLACES: &[Place] = &[$(Place::$place),+];
    };
}

places!(
    // A child that is a value.
    Factory,
    Activate,
    Run,
    Deactivate,
    DropValue,
    DropCapture,
    // A child that is a function, and its state.
    Function,
    Poll,
    DropFuture,
    CloneState,
    // Errors.
    ConvertError,
    DisplayError,
    SourceOfError,
    DropError,
    // Policies.
    OnError,
    RetryAfter,
    Curve,
    Iterator,
    RandomFactory,
    Random,
    RandomOfBackoff,
    OnChildFailure,
    DropAnswer,
    DropProperty,
    // Health checks.
    HealthCheck,
    DropHealthCheck,
    // Mailboxes.
    FinalMessage,
    Reply,
    DropMessage,
    // Wakers.
    Wake,
    DropWaker,
);

/// What a probe finds in its tree.
pub(crate) struct World {
    pub(crate) app: SupervisorHandle,
    pub(crate) address: Address<Message>,
    pub(crate) store: DeadLetterStore,
    pub(crate) context: Mutex<Option<Context>>,
}

pub(crate) type Action = fn(Place, &World);

/// Does its action at one place, once the tree is up.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Inner>);

struct Inner {
    place: Place,
    action: Action,
    reached: AtomicU32,
    world: OnceLock<World>,
}

impl Probe {
    pub(crate) fn new(place: Place, action: Action) -> Self {
        let (reached, world) = (AtomicU32::new(0), OnceLock::new());
        Self(Arc::new(Inner { place, action, reached, world }))
    }

    pub(crate) fn set_world(&self, world: World) {
        assert!(self.0.world.set(world).is_ok(), "it is set once");
    }

    /// Does the action, if this is the place. Not more than three times, so that an action which causes
    /// itself ends.
    pub(crate) fn at(&self, place: Place) {
        let Inner { action, reached, world, .. } = &*self.0;
        if let (true, Some(world), false) =
            (place == self.0.place, world.get(), std::thread::panicking())
            && reached.fetch_add(1, Ordering::Relaxed) < 3
        {
            action(place, world);
        }
    }

    /// Keeps the context of a child that runs.
    pub(crate) fn enter(&self, ctx: &Context) {
        if let Some(world) = self.0.world.get() {
            // Dropped when the lock is free: the last context may be at a place.
            let last = world.context.lock().unwrap().replace(ctx.clone());
            drop(last);
        }
    }

    pub(crate) fn reached(&self) -> u32 {
        self.0.reached.load(Ordering::Relaxed)
    }

    pub(crate) fn world(&self) -> &World {
        self.0.world.get().expect("the tree is up")
    }
}

/// Is at a place when it is dropped.
pub(crate) struct OnDrop(pub(crate) Probe, pub(crate) Place);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.at(self.1);
    }
}

/// A message or a question. Some are at a place when they are dropped.
#[derive(Default)]
pub(crate) struct Message {
    _dropped: Option<OnDrop>,
    _reply: Option<Reply<()>>,
}

impl Message {
    pub(crate) fn question(reply: Reply<()>) -> Self {
        Self { _dropped: None, _reply: Some(reply) }
    }

    pub(crate) fn hooked(probe: &Probe) -> Self {
        Self { _dropped: Some(OnDrop(probe.clone(), Place::DropMessage)), _reply: None }
    }
}
