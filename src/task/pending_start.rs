//! The start of a child that is requested now, and whose answer is awaited later.
//!
//! # Invariants
//!
//! 1. It is about one incarnation of the supervisor. The next one may have another child of that name.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::child::ChildSpec;
use crate::core;
use crate::error::ControlError;
use crate::handle::control::admit;
use crate::handle::observe::ended;
use crate::handle::{ChildRef, SupervisorHandle};
use crate::runtime::SupervisorShared;
use crate::runtime::request::{Request, Started};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PendingStart {
    supervisor: Arc<SupervisorShared>,
    answered: oneshot::Receiver<Result<Started, ControlError>>,
    /// The answer, once there is one.
    answer: Option<StartAnswer>,
}

/// `None`: the supervisor has ended before it took the request.
pub(crate) type StartAnswer = Option<Result<ChildRef, ControlError>>;

impl SupervisorHandle {
    /// Requests the start of a child, which the running incarnation of this supervisor answers.
    pub(crate) fn request_start(&self, spec: ChildSpec) -> Result<PendingStart, ControlError> {
        let supervisor = self.current();
        let spec = admit(&supervisor, spec)?;
        let (answer, answered) = oneshot::channel();
        // A request that an ended supervisor returns is dropped here, which drops its answer.
        drop(supervisor.inbox.push_request(Request::Start { spec, answer }));
        Ok(PendingStart { supervisor, answered, answer: None })
    }
}

impl PendingStart {
    /// Resolves to the answer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<&StartAnswer> {
        if self.answer.is_none() {
            let answer = ready!(Pin::new(&mut self.answered).poll(cx)).ok();
            let child = |started| ChildRef::new(&self.supervisor, started);
            self.answer = Some(answer.map(|it| it.map(child)));
        }
        Poll::Ready(self.answer.get_or_insert_default())
    }

    /// Stops the child that was started, and waits until it has ended.
    pub(crate) async fn terminate(&self) {
        let Some(Some(Ok(child))) = &self.answer else { return };
        let (segment, call) = (child.name().to_owned(), "terminate_child");
        let request = core::ChildRequest::Terminate;
        let stopped = SupervisorHandle::new(Arc::clone(&self.supervisor))
            .call(&self.supervisor, |answer| Request::Act {
                segment,
                call,
                note: None,
                request,
                answer,
            })
            .await;
        if let Err(ControlError::ShuttingDown { .. }) = stopped {
            // How it ends is of no interest here.
            drop(ended(&self.supervisor).await);
        }
    }
}
