//! Handlers that answer requests.

use std::any::Any;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::letters::LetterOwner;
use super::registration::{Inlet, run};
use super::topics::{BusShared, HandlerId, Topic, TopicKey};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::{CatchWakerPanic, Foreign, catch_panic};
use crate::path::Path;

/// A request on the [bus](crate::bus), which one handler answers.
///
/// ```
/// use verger::bus::Request;
///
/// struct Price {
///     article: u32,
/// }
///
/// impl Request for Price {
///     type Reply = Option<u64>;
/// }
/// ```
pub trait Request: Send + Sync + 'static {
    /// The type of the answer.
    type Reply: Send + 'static;
}

/// The handler of a type of requests, as the callers see it.
pub(super) struct Answerer<R: Request> {
    pub(super) id: HandlerId,
    pub(super) owner: Arc<LetterOwner>,
    pub(super) queue: Sender<Question<R>>,
}

/// A request in the queue of its handler, or in its hand. Dropping it without an answer fails the call.
pub(super) struct Question<R: Request> {
    request: Foreign<R>,
    /// `None` once it was answered.
    reply: Option<oneshot::Sender<Result<R::Reply, Unanswered>>>,
    /// Whether the handler was called.
    begun: bool,
}

/// Why a request has no answer.
pub(super) enum Unanswered {
    /// The registration has ended before the handler was called.
    NoHandler,
    /// The handler has failed, or was aborted with its child.
    Failed(Arc<ExitReason>),
    /// The caller waited no longer than this.
    TimedOut(Duration),
}

impl<R: Request> Question<R> {
    fn settle(&mut self, outcome: Result<R::Reply, Unanswered>) {
        if let Some(reply) = self.reply.take() {
            // Wakes the caller, or drops the answer if the caller has gone.
            catch_panic(|| drop(reply.send(outcome)));
        }
    }
}

impl<R: Request> Drop for Question<R> {
    fn drop(&mut self) {
        if self.reply.is_some() {
            let begun = self.begun;
            self.settle(Err(match begun {
                true => Unanswered::Failed(Arc::new(ExitReason::Aborted)),
                false => Unanswered::NoHandler,
            }));
        }
    }
}

/// The handler of one type of requests on one channel.
pub(super) struct RequestTopic<R: Request>(Option<Arc<Answerer<R>>>);

impl<R: Request> Default for RequestTopic<R> {
    fn default() -> Self {
        Self(None)
    }
}

impl<R: Request> RequestTopic<R> {
    /// Sets the handler. Returns the one that it replaces, to be dropped once no lock is held.
    ///
    /// # Errors
    ///
    /// Returns the path of a different child that answers these requests and has not ended. The new handler is
    /// dropped; nothing is queued for it.
    pub(super) fn set(&mut self, answerer: Answerer<R>) -> Result<Option<Arc<Answerer<R>>>, Path> {
        if let Some(Answerer { owner, queue, .. }) = self.0.as_deref() {
            let path = owner.path();
            let is_other = path != answerer.owner.path();
            // An incarnation that ends just now can't replace the handler of the next one.
            let is_later = owner.incarnation() > answerer.owner.incarnation();
            if (is_other || is_later) && !owner.has_ended() && !queue.is_closed() {
                return Err(path);
            }
        }
        Ok(self.0.replace(Arc::new(answerer)))
    }

    /// Returns the handler that is registered.
    pub(super) fn current(shared: &BusShared, key: &TopicKey) -> Option<Arc<Answerer<R>>> {
        shared.read(key, |topic: &Self| topic.0.clone())?
    }
}

impl<R: Request> Topic for RequestTopic<R> {
    fn remove(&mut self, id: HandlerId) -> Box<dyn Any + Send> {
        Box::new(self.0.take_if(|answerer| answerer.id == id))
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Sends a request, and waits for room in the queue and for the answer.
pub(super) async fn ask<R: Request>(
    answerer: Arc<Answerer<R>>,
    request: Foreign<R>,
) -> Result<R::Reply, Unanswered> {
    let (reply, answer) = oneshot::channel();
    let question = Question { request, reply: Some(reply), begun: false };
    // Dropping a request that was returned settles it.
    let sent = CatchWakerPanic::new(pin!(answerer.queue.send(question))).await;
    drop(sent);
    // A request that was sent while the queue was closed is dropped with the last sender.
    drop(answerer);
    CatchWakerPanic::new(answer).await.unwrap_or(Err(Unanswered::NoHandler))
}

/// Calls a handler for one request after another, until its registration ends. Returns the first error if that
/// fails the child.
pub(super) async fn answer_all<R, F, Fut, E>(
    mut inlet: Inlet<Question<R>>,
    owner: Arc<LetterOwner>,
    mut handler: F,
    fails_child: bool,
) -> Exit
where
    R: Request,
    F: FnMut(Arc<R>) -> Fut,
    Fut: Future<Output = Result<R::Reply, E>>,
    E: Into<ExitError>,
{
    while let Some(mut question) = inlet.next().await {
        if inlet.has_ended() {
            return Ok(());
        }
        let request = Arc::clone(question.request.shared());
        question.begun = true;
        let Some(reply) = question.reply.as_mut().filter(|reply| !reply.is_closed()) else {
            continue;
        };
        let call = || {
            let future = handler(request);
            async move { future.await.map_err(Into::into) }
        };
        // The caller closes the reply when it stops waiting.
        match run(owner.message_span::<R>(), call, reply.closed()).await {
            None => {}
            Some(Ok(answer)) => question.settle(Ok(answer)),
            Some(Err(error)) => {
                let reason = Arc::new(error.clone().into_reason());
                question.settle(Err(Unanswered::Failed(reason)));
                if fails_child && !error.is_ignore() {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}
