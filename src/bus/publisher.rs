//! The bus as emitters and callers see it, and the errors of calls and registrations.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::coop::consume_budget;

use super::events::{EventTopic, Offered};
use super::letters::LetterOwner;
use super::requests::{Request, RequestTopic, Unanswered, ask};
use super::topics::{BusShared, DEAD_LETTER_CHANNEL, EventChannel, TopicKey};
use crate::child::awaiting::reported;
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::panic::Foreign;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::watch::log_question;

/// Emits events and calls handlers on the bus of a tree; returned by
/// [`SupervisorHandle::bus`](crate::SupervisorHandle::bus) and [`Bus::publisher`](crate::bus::Bus::publisher).
///
/// Cheap to clone. Dead letters name the child or supervisor that the publisher comes from.
///
/// The examples of [`call`](Self::call) and [`emit`](Self::emit) use one.
#[derive(Clone)]
pub struct Publisher {
    pub(super) shared: Arc<BusShared>,
    pub(super) channel: EventChannel,
    emitter: LetterOwner,
}

impl Publisher {
    pub(super) fn new(supervisor: &SupervisorShared, emitter: LetterOwner) -> Self {
        Self { shared: BusShared::of(supervisor), channel: EventChannel::default(), emitter }
    }

    /// Returns a publisher to a named channel: events reach the handlers that are registered on a
    /// channel of the same name.
    ///
    /// Channels have no levels: the channel of a publisher to a channel is a channel of the bus.
    ///
    /// # Errors
    ///
    /// [`BusError::Reserved`] for [`DEAD_LETTER_CHANNEL`](crate::bus::DEAD_LETTER_CHANNEL).
    pub fn channel(&self, name: &str) -> Result<Self, BusError> {
        if name == DEAD_LETTER_CHANNEL {
            return Err(BusError::Reserved { channel: DEAD_LETTER_CHANNEL });
        }
        Ok(Self { channel: EventChannel::named(name), ..self.clone() })
    }

    /// Emits an event: queues it for each handler of its type, and returns at once.
    ///
    /// The handlers run later, in tasks of their own. An event that can't be delivered becomes a
    /// [dead letter](crate::dead_letter), from which it is taken as an `Arc<E>`:
    ///
    /// * `no_handler` if no handler is registered, with the emitter as the target;
    /// * `mailbox_full` for each handler whose queue is full, with the handler's child as the target.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use verger::Supervisor;
    /// use verger::dead_letter::DeadLetterReason;
    ///
    /// struct Tick(u32);
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").build()?.start().await?;
    /// let mut letters = app.dead_letters();
    /// app.bus().emit(Tick(7));
    ///
    /// let letter = letters.next().await.expect("the tree runs");
    /// assert_eq!(letter.reason, DeadLetterReason::NoHandler);
    /// assert_eq!(letter.take::<Arc<Tick>>().expect("the event").0, 7);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn emit<E: Send + Sync + 'static>(&self, event: E) {
        let event = Foreign::new(Arc::new(event));
        let key = TopicKey::new::<EventTopic<E>>(&self.channel);
        let Some(handlers) = EventTopic::<E>::all(&self.shared, &key) else {
            return self.no_handler(event);
        };
        let Some((last, others)) = handlers.split_last() else { return self.no_handler(event) };
        let topic = (&*self.shared, &key);
        let mut accepted = false;
        for handler in others {
            let offered = handler.offer(event.clone(), &self.emitter, topic);
            accepted |= matches!(offered, Offered::Accepted);
        }
        if let Offered::Returned(event) = last.offer(event, &self.emitter, topic)
            && !accepted
        {
            self.no_handler(event);
        }
    }

    /// Sends a request to the handler of its type, and waits for the answer, at most for `timeout`. `None` waits
    /// without a limit.
    ///
    /// Without a time limit, the status of a child that calls shows whose answer it waits for. A wait of 10 s is logged,
    /// and then every 30 s.
    ///
    /// If the queue of the handler is full, the call waits for room. When the time limit passes, or the future is
    /// dropped, the handler is cancelled: its future is dropped at one of its await points.
    ///
    /// A handler answers one request at a time. So a handler that calls a request which it answers itself waits for
    /// itself, until the time limit of one of the calls. A call never outlives the handler: if the handler's child
    /// ends, the call fails.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use verger::bus::{CallError, Request};
    /// use verger::{Context, Exit, ExitError, Readiness, Supervisor, worker};
    ///
    /// struct Total;
    ///
    /// impl Request for Total {
    ///     type Reply = u64;
    /// }
    ///
    /// async fn cart(ctx: Context) -> Exit {
    ///     ctx.bus().answer(|_: Arc<Total>| async { Ok::<_, ExitError>(42) })?;
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cart = worker("cart", cart).readiness(Readiness::Signal);
    /// let shop = Supervisor::builder("shop").child(cart).build()?.start().await?;
    ///
    /// assert_eq!(shop.bus().call(Total, None).await?, 42);
    ///
    /// shop.stop_child("cart").await?;
    /// let error = shop.bus().call(Total, None).await.unwrap_err();
    /// assert!(matches!(error, CallError::NoHandler { .. }));
    /// # shop.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`CallError::NoHandler`] if no handler is registered, or if it ended before it was called,
    /// * [`CallError::HandlerFailed`] if the handler returned an error, panicked, or was aborted with its child,
    /// * [`CallError::TimedOut`] if the time limit has passed.
    ///
    /// Each of them also is a [dead letter](crate::dead_letter) with the request: `no_handler`, `handler_error` or
    /// `timeout`.
    ///
    /// # Panics
    ///
    /// Panics if it has a time limit and is polled outside of a tokio runtime with timers enabled. Also in a runtime
    /// without timers, if it has to wait.
    ///
    /// # Cancel safety
    ///
    /// The request is sent by the first poll for which the queue has room. If the future is dropped later, the
    /// handler is cancelled, or not called at all, and the answer is lost.
    pub async fn call<R: Request>(
        &self,
        request: R,
        timeout: impl Into<Option<Duration>> + Send,
    ) -> Result<R::Reply, CallError> {
        let (timeout, request) = (timeout.into(), Foreign::new(Arc::new(request)));
        let key = TopicKey::new::<RequestTopic<R>>(&self.channel);
        let Some(answerer) = RequestTopic::<R>::current(&self.shared, &key) else {
            consume_budget().await;
            return Err(self.unanswered(request, None, Unanswered::NoHandler));
        };
        let owner = Arc::clone(&answerer.owner);
        let asking = ask(answerer, request.clone());
        let answered = match timeout {
            None => {
                let (child, of) = (self.emitter.child_incarnation(), owner.path());
                let what = || format!("an answer of {of}");
                let log = |waited| {
                    let child = child.map(|child| child.path());
                    log_question(child, Some(of.clone()), waited);
                };
                reported(child, what, log, asking).await
            }
            Some(after) => {
                let answered = tokio::time::timeout(after, asking).await;
                answered.unwrap_or(Err(Unanswered::TimedOut(after)))
            }
        };
        answered.map_err(|failure| self.unanswered(request, Some(&owner), failure))
    }

    /// Returns how often a handler of dead letters has failed in this tree. See
    /// [`Bus::on_dead_letter`](crate::bus::Bus::on_dead_letter).
    #[must_use]
    pub fn failed_dead_letter_handlers(&self) -> u64 {
        self.shared.failed_letter_handlers.load(Ordering::Relaxed)
    }

    fn no_handler<E: Send + Sync + 'static>(&self, event: Foreign<E>) {
        self.emitter.publish(DeadLetterReason::NoHandler, &self.emitter, event, None);
    }

    /// Publishes the letter of a call, and returns its error.
    fn unanswered<R: Request>(
        &self,
        request: Foreign<R>,
        owner: Option<&LetterOwner>,
        failure: Unanswered,
    ) -> CallError {
        let target = owner.unwrap_or(&self.emitter);
        let (name, handler) = (type_name::<R>(), target.path());
        let (reason, error) = match &failure {
            Unanswered::NoHandler => (DeadLetterReason::NoHandler, None),
            Unanswered::Failed(error) => (DeadLetterReason::HandlerError, Some(Arc::clone(error))),
            Unanswered::TimedOut(_) => (DeadLetterReason::Timeout, None),
        };
        self.emitter.publish(reason, target, request, error);
        match failure {
            Unanswered::NoHandler => CallError::NoHandler {
                request: name,
                channel: self.channel.name().cloned(),
                handler: owner.map(|_| handler),
            },
            Unanswered::Failed(reason) => {
                CallError::HandlerFailed { request: name, handler, reason }
            }
            Unanswered::TimedOut(after) => CallError::TimedOut { request: name, handler, after },
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("emitter", &self.emitter)
            .field("channel", &self.channel.name())
            .finish()
    }
}

/// Error returned by [`Bus::call`](crate::bus::Bus::call) and [`Publisher::call`](crate::bus::Publisher::call).
///
/// `request` is the type name of the request. `Debug` prints the same text as `Display`.
///
/// The example of [`Publisher::call`](crate::bus::Publisher::call) matches one.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No handler answers these requests, or the handler ended before it was called.
    #[error(
        "{} `{request}`{}; register a handler with `answer`",
        NotAnswered(.handler),
        OnChannel(.channel)
    )]
    NoHandler {
        /// The type of the request.
        request: &'static str,
        /// The name of the channel. `None` for the default channel.
        channel: Option<Arc<str>>,
        /// The child whose handler ended before it was called. `None` if no handler was registered.
        handler: Option<Path>,
    },
    /// The handler returned an error, panicked, or was aborted with its child.
    ///
    /// The request may have had an effect.
    #[error("the handler of `{request}` in `{handler}` did not answer: {reason}")]
    HandlerFailed {
        /// The type of the request.
        request: &'static str,
        /// The child that has registered the handler.
        handler: Path,
        /// How the handler failed. [`Aborted`](ExitReason::Aborted) if its child has ended.
        reason: Arc<ExitReason>,
    },
    /// The time limit of the call has passed, and the handler was cancelled.
    ///
    /// The request may have had an effect.
    #[error("the handler of `{request}` in `{handler}` did not answer within {after:?}")]
    TimedOut {
        /// The type of the request.
        request: &'static str,
        /// The child that has registered the handler.
        handler: Path,
        /// The time limit.
        after: Duration,
    },
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error returned by [`Bus::channel`](crate::bus::Bus::channel) and [`Bus::answer`](crate::bus::Bus::answer).
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use std::sync::Arc;
///
/// use verger::bus::{BusError, Request};
/// use verger::{Context, Exit, ExitError};
///
/// struct Total;
///
/// impl Request for Total {
///     type Reply = u64;
/// }
///
/// async fn cart(ctx: Context) -> Exit {
///     match ctx.bus().answer(|_: Arc<Total>| async { Ok::<_, ExitError>(42) }) {
///         Ok(_) => ctx.cancelled().await,
///         Err(BusError::AlreadyAnswered { owner, .. }) => println!("`{owner}` answers it"),
///         Err(error) => return Err(error.into()),
///     }
///     Ok(())
/// }
/// # drop(cart);
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The channel is reserved for dead letters.
    #[error("the channel `{channel}` is reserved; subscribe to dead letters with `on_dead_letter`")]
    Reserved {
        /// The name of the channel: [`DEAD_LETTER_CHANNEL`](crate::bus::DEAD_LETTER_CHANNEL).
        channel: &'static str,
    },
    /// A different child answers these requests.
    #[error(
        "`{owner}` already answers `{request}`{}; stop it first, or use another channel",
        OnChannel(.channel)
    )]
    AlreadyAnswered {
        /// The type of the request.
        request: &'static str,
        /// The name of the channel. `None` for the default channel.
        channel: Option<Arc<str>>,
        /// The child that has registered the handler.
        owner: Path,
    },
}

impl fmt::Debug for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The channel in an error text. Nothing for the default channel.
struct OnChannel<'a>(&'a Option<Arc<str>>);

impl fmt::Display for OnChannel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(channel) => write!(f, " on the channel `{}`", Visible(channel)),
            None => Ok(()),
        }
    }
}

/// Why a request has no answer, in an error text.
struct NotAnswered<'a>(&'a Option<Path>);

impl fmt::Display for NotAnswered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "`{path}` no longer answers"),
            None => f.write_str("no handler answers"),
        }
    }
}
