//! The start of a child that is requested now, and whose answer is awaited later.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::child_ref::ChildRef;
use super::control::admit;
use super::route::SupervisorHandle;
use crate::child::ChildSpec;
use crate::error::ControlError;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{Request, Started};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PendingStart {
    supervisor: Arc<SupervisorShared>,
    answered: oneshot::Receiver<Result<Started, ControlError>>,
}

impl SupervisorHandle {
    /// Requests the start of a child, which the running incarnation of this supervisor answers.
    pub(crate) fn request_start(&self, spec: ChildSpec) -> Result<PendingStart, ControlError> {
        let supervisor = self.current();
        let spec = admit(&supervisor, spec)?;
        let (answer, answered) = oneshot::channel();
        // A request that an ended supervisor returns is dropped here, which drops its answer.
        drop(supervisor.inbox.push_request(Request::Start { spec, answer }));
        Ok(PendingStart { supervisor, answered })
    }
}

impl PendingStart {
    /// Resolves to the answer, or to `None` if the supervisor has ended before it took the request.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ChildRef, ControlError>>> {
        let answer = ready!(Pin::new(&mut self.answered).poll(cx)).ok();
        Poll::Ready(answer.map(|it| it.map(|started| ChildRef::new(&self.supervisor, started))))
    }
}
