//! The bus as a child sees it.

use std::any::type_name;
use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::events::{EventHandler, EventLoop, EventTopic};
use super::letters::{LetterHandling, LetterOwner};
use super::publisher::{BusError, CallError, Publisher};
use super::registration::{EndOnDrop, Inlet, RegisteredHandler, Registration, queue};
use super::requests::{Answerer, Request, RequestTopic, answer_all};
use super::topics::TopicKey;
use crate::child::Context;
use crate::dead_letter::DeadLetter;
use crate::exit::{Exit, ExitError, Outcome};
use crate::handle::{SupervisorHandle, supervisor_of};

/// How many events a handler may lag behind by default.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(64).unwrap();

impl Context {
    /// Returns the [event bus](crate::bus) of the tree.
    #[must_use]
    pub fn bus(&self) -> Bus {
        let supervisor = supervisor_of(self);
        let emitter = LetterOwner::child(Arc::clone(&supervisor), Arc::clone(&self.incarnation));
        Bus {
            publisher: Publisher::new(&supervisor, emitter.clone()),
            owner: Arc::new(emitter),
            ctx: self.clone(),
            capacity: CAPACITY,
            fails_child: false,
        }
    }
}

impl SupervisorHandle {
    /// Returns a publisher to the [event bus](crate::bus) of the tree, which emits and calls in the name of this
    /// supervisor.
    ///
    /// Handlers belong to children, and are registered with [`Context::bus`].
    #[must_use]
    pub fn bus(&self) -> Publisher {
        let supervisor = self.current();
        Publisher::new(&supervisor, LetterOwner::supervisor(Arc::clone(&supervisor)))
    }
}

/// The event bus of a tree, for one child; returned by [`Context::bus`].
///
/// Cheap to clone. What is registered through it ends with this incarnation of the child. The
/// [module](crate::bus) has an example.
#[derive(Clone)]
pub struct Bus {
    publisher: Publisher,
    owner: Arc<LetterOwner>,
    ctx: Context,
    capacity: NonZeroUsize,
    fails_child: bool,
}

/// Options of the handlers that are registered through the returned value.
impl Bus {
    /// Returns the same bus on a named channel.
    ///
    /// Handlers receive what is emitted on a channel of the same name. Channels have no levels: the
    /// channel of a channel is a channel of the bus.
    ///
    /// # Errors
    ///
    /// [`BusError::Reserved`] for [`DEAD_LETTER_CHANNEL`](crate::bus::DEAD_LETTER_CHANNEL), to which only the bus itself
    /// publishes. Use [`on_dead_letter`](Self::on_dead_letter).
    pub fn channel(&self, name: &str) -> Result<Self, BusError> {
        Ok(Self { publisher: self.publisher.channel(name)?, ..self.clone() })
    }

    /// Sets how many events may wait for a handler. Default: 64. Zero is treated as 1.
    #[must_use = "it returns a bus with this capacity"]
    pub fn capacity(&self, events: usize) -> Self {
        let capacity = NonZeroUsize::new(events).unwrap_or(NonZeroUsize::MIN);
        Self { capacity, ..self.clone() }
    }

    /// Makes an error or a panic of a handler the failure of the child, as for [`Context::spawn`].
    ///
    /// By default it is a dead letter with the reason `handler_error`, which is logged as a warning, and the handler
    /// goes on with the next event.
    #[must_use = "it returns a bus with this option"]
    pub fn errors_fail_child(&self) -> Self {
        Self { fails_child: true, ..self.clone() }
    }
}

impl Bus {
    /// Registers a handler of events of type `E`. It is called for one event at a time, in the order in
    /// which they were emitted.
    ///
    /// The handler runs in a [helper task](Context::spawn) of the child, so it ends with this incarnation. If the
    /// child is cancelled, the handler goes on until the child has returned. On the context of an incarnation
    /// that is cancelled or has ended, nothing is registered.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn on<E, F, Fut>(&self, handler: F) -> Registration
    where
        E: Send + Sync + 'static,
        F: FnMut(Arc<E>) -> Fut + Send + 'static,
        Fut: Future<Output: Outcome> + Send + 'static,
    {
        if self.ctx.is_cancelled() {
            return Registration::ended();
        }
        let (handling, registration) = self.register_events::<E>(self.capacity, None);
        self.spawn(handling.handle_all(handler));
        registration
    }

    /// Registers a handler of the next event of type `E`. With that event, it is gone.
    ///
    /// # Panics
    ///
    /// As for [`on`](Self::on).
    pub fn once<E, F, Fut>(&self, handler: F) -> Registration
    where
        E: Send + Sync + 'static,
        F: FnOnce(Arc<E>) -> Fut + Send + 'static,
        Fut: Future<Output: Outcome> + Send + 'static,
    {
        if self.ctx.is_cancelled() {
            return Registration::ended();
        }
        let once = Some(AtomicBool::new(false));
        let (handling, registration) = self.register_events::<E>(NonZeroUsize::MIN, once);
        self.spawn(handling.handle_one(handler));
        registration
    }

    /// Registers the handler that answers requests of type `R` on this channel. It answers one request
    /// at a time.
    ///
    /// A registration of the same child, or of an earlier incarnation of it, is replaced: the earlier handler
    /// answers what it has queued. If the handler fails, so does the call. When the caller stops waiting, the
    /// handler's future is dropped.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// use verger::bus::Request;
    /// use verger::{Context, Exit, ExitError, Supervisor, worker};
    ///
    /// struct Double(u64);
    ///
    /// impl Request for Double {
    ///     type Reply = u64;
    /// }
    ///
    /// async fn arithmetic(ctx: Context) -> Exit {
    ///     ctx.bus().answer(|request: Arc<Double>| async move {
    ///         request.0.checked_mul(2).ok_or(ExitError::from("too large"))
    ///     })?;
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let arithmetic = worker("arithmetic", arithmetic).readiness(verger::Readiness::Signal);
    /// let app = Supervisor::builder("app").child(arithmetic).build()?.start().await?;
    /// assert_eq!(app.bus().call(Double(21), Duration::from_secs(1)).await?, 42);
    ///
    /// let error = app.bus().call(Double(u64::MAX), None).await.unwrap_err();
    /// assert!(error.to_string().ends_with("in `app/arithmetic` did not answer: failed: too large"));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BusError::AlreadyAnswered`] if a different child, which has not ended, answers these requests.
    ///
    /// # Panics
    ///
    /// As for [`on`](Self::on).
    pub fn answer<R, F, Fut, E>(&self, handler: F) -> Result<Registration, BusError>
    where
        R: Request,
        F: FnMut(Arc<R>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R::Reply, E>> + Send + 'static,
        E: Into<ExitError> + 'static,
    {
        if self.ctx.is_cancelled() {
            return Ok(Registration::ended());
        }
        let Publisher { shared, channel, .. } = &self.publisher;
        let (key, id) = (TopicKey::new::<RequestTopic<R>>(channel), shared.next_id());
        let (sender, receiver) = queue(self.capacity);
        let answerer = Answerer { id, owner: Arc::clone(&self.owner), queue: sender };
        let set = shared.add(&key, |topic: &mut RequestTopic<R>| topic.set(answerer));
        if let Err(owner) = set {
            let (request, channel) = (type_name::<R>(), channel.name().cloned());
            return Err(BusError::AlreadyAnswered { request, channel, owner });
        }
        let entry = RegisteredHandler::new(shared, &key, id);
        let registration = Registration::new(&entry);
        let inlet = Inlet::new(&self.owner, entry, receiver);
        self.spawn(answer_all(inlet, Arc::clone(&self.owner), handler, self.fails_child));
        Ok(registration)
    }

    /// Registers a handler of all dead letters of the tree: those of mailboxes, of given-up children and of
    /// the bus. Each handler receives each letter.
    ///
    /// A failure or panic of the handler makes no letter. It is logged at `DEBUG` and counted by
    /// [`Publisher::failed_dead_letter_handlers`], and the handler goes on. Events that the handler emits and that
    /// can't be delivered make no letters either. But an event that it emits, and whose handler then fails, does: don't
    /// emit such events from here, because each letter about one would lead to the next. As for any [subscription](crate::status::Subscription),
    /// letters about suppressed types are skipped, and a handler that lags more than 1024 letters behind misses the
    /// oldest, which is logged. The [capacity](Self::capacity) and the channel of this bus don't matter.
    ///
    /// # Panics
    ///
    /// As for [`on`](Self::on).
    pub fn on_dead_letter<F, Fut>(&self, handler: F) -> Registration
    where
        F: FnMut(DeadLetter) -> Fut + Send + 'static,
        Fut: Future<Output: Outcome> + Send + 'static,
    {
        if self.ctx.is_cancelled() {
            return Registration::ended();
        }
        let stopped = CancellationToken::new();
        let entry = RegisteredHandler::of_dead_letters(&stopped);
        let registration = Registration::new(&entry);
        let supervisor = supervisor_of(&self.ctx);
        let root = supervisor.upward().last().unwrap_or(&supervisor);
        let handling = LetterHandling {
            letters: root.dead_letters.subscribe(),
            stopped,
            _entry: EndOnDrop(entry),
            shared: Arc::clone(&self.publisher.shared),
            owner: LetterOwner::clone(&self.owner),
        };
        self.ctx.detached_errors().spawn(handling.run(handler));
        registration
    }

    /// Emits an event: see [`Publisher::emit`].
    pub fn emit<E: Send + Sync + 'static>(&self, event: E) {
        self.publisher.emit(event);
    }

    /// Sends a request and waits for the answer: see [`Publisher::call`].
    ///
    /// # Errors
    ///
    /// As for [`Publisher::call`].
    pub async fn call<R: Request>(
        &self,
        request: R,
        timeout: impl Into<Option<Duration>> + Send,
    ) -> Result<R::Reply, CallError> {
        self.publisher.call(request, timeout).await
    }

    /// Returns a publisher to this channel, which can emit and call after the child has ended as well.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    fn register_events<E: Send + Sync + 'static>(
        &self,
        capacity: NonZeroUsize,
        once: Option<AtomicBool>,
    ) -> (EventLoop<E>, Registration) {
        let Publisher { shared, channel, .. } = &self.publisher;
        let (key, id) = (TopicKey::new::<EventTopic<E>>(channel), shared.next_id());
        let (sender, receiver) = queue(capacity);
        let handler = EventHandler::new(id, &self.owner, sender, once);
        let entry = RegisteredHandler::new(shared, &key, id);
        let registration = Registration::new(&entry);
        let inlet = Inlet::new(&self.owner, entry, receiver);
        let handling =
            EventLoop::new(inlet, Arc::downgrade(&handler), &self.owner, self.fails_child);
        let replaced = shared.add(&key, |topic: &mut EventTopic<E>| topic.add(handler));
        drop(replaced);
        (handling, registration)
    }

    /// Runs a handler. If the child has ended meanwhile, the handler is dropped, which ends its registration.
    fn spawn(&self, handling: impl Future<Output = Exit> + Send + 'static) {
        if self.fails_child {
            self.ctx.spawn(handling);
        } else {
            self.ctx.detached_errors().spawn(handling);
        }
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { publisher, owner, ctx: _, capacity, fails_child } = self;
        f.debug_struct("Bus")
            .field("child", owner)
            .field("channel", &publisher.channel.name())
            .field("capacity", capacity)
            .field("errors_fail_child", fails_child)
            .finish()
    }
}
