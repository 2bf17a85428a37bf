//! What of a child spec is about waits that errors ask for. How they are found is a policy's matter.

use std::error::Error;
use std::time::Duration;

use super::{ChildDefaults, ChildSpec};

impl ChildSpec {
    /// Asks an error how long to wait before the restart that follows it: what a server has said in
    /// `Retry-After`, for example. `None`: the [`backoff`](Self::backoff) says it.
    ///
    /// The wait that the error asks for takes the place of the one that would have been drawn, as it
    /// is: no jitter is added, and no bound of the backoff applies. It counts from the failure, and
    /// is shown like any other. The failure is one in a row, and a limit counts it; but nothing is
    /// drawn, so the next one that asks for nothing goes on where the backoff was, and one whose
    /// waits have an end isn't used up. With a wait of zero the child is restarted at once, which is
    /// always charged to its supervisor.
    ///
    /// The error is found as that of [`restart_if`](Self::restart_if) is: the one that the child
    /// returned, or its causes; of a supervisor that gave up, that of the child it gave up on. Called
    /// several times, the first that answers counts. Each is asked once for a failure, in the
    /// supervisor's turn, so it should be quick. One that panics has no answer.
    ///
    /// Whether the restart is charged is another question: see
    /// [`OnExit::RestartUncharged`](crate::OnExit::RestartUncharged).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, OnExit, worker};
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("too many requests")]
    /// struct TooManyRequests {
    ///     retry_after: Option<Duration>,
    /// }
    ///
    /// async fn poll(ctx: Context) -> Result<(), TooManyRequests> {
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// let poller = worker("poller", poll)
    ///     .retry_after(|error: &TooManyRequests| error.retry_after)
    ///     .on_error(|_: &TooManyRequests| true, OnExit::RestartUncharged);
    /// # drop(poller);
    /// ```
    pub fn retry_after<E: Error + 'static>(
        mut self,
        wait: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.edit().waits.ask(wait);
        self
    }
}

impl ChildDefaults {
    /// See [`ChildSpec::retry_after`]. A child's own are asked first.
    pub fn retry_after<E: Error + 'static>(
        mut self,
        wait: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.options.waits.ask(wait);
        self
    }
}
