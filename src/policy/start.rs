//! Options of the start: its order, its failure, readiness, and the cause of a start.

use crate::string_enum::string_enum;

/// Whether the children of a supervisor start one after another or concurrently.
///
/// The example of [`SupervisorBuilder`](crate::SupervisorBuilder) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Starts each child when the one before it is active or down for good. The default, as in OTP.
    #[default]
    Sequential,
    /// Starts each child as soon as its requirements are met. Children still stop one at a time.
    Concurrent,
}

string_enum!(
    Start, "start":
    Sequential = "sequential",
    Concurrent = "concurrent",
);

/// What a supervisor does when a child fails its very first start.
///
/// ```
/// use verger::policy::FirstStart;
/// use verger::{Context, Exit, Readiness, Supervisor, worker};
///
/// async fn refused(_ctx: Context) -> Exit {
///     Err("connection refused".into())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", refused).readiness(Readiness::Signal);
/// let app = Supervisor::builder("app").child(db).first_start(FirstStart::Fail).build()?;
///
/// assert!(app.start().await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstStart {
    /// Restarts the child as after any failure, so a service starts when its dependencies do.
    ///
    /// The default. OTP has no such mode.
    #[default]
    Retry,
    /// Stops the started children in reverse order, and returns an error with the child and the cause.
    ///
    /// This is what OTP does. A child that has been active, has exited cleanly or has declined has had its
    /// first start: if its restart fails while its siblings still start, that is an ordinary failure.
    Fail,
}

string_enum!(
    FirstStart, "first start":
    Retry = "retry",
    Fail = "fail",
);

/// When a started child becomes active, so that the children behind it can start.
///
/// ```
/// use verger::{Context, Exit, Readiness, Supervisor, worker};
///
/// async fn db(ctx: Context) -> Exit {
///     // Connects, and only then lets the children after it start.
///     ctx.ready();
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// let db = worker("db", db).readiness(Readiness::Signal);
/// let app = Supervisor::builder("app").child(db);
/// # drop(app);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// As soon as its task is spawned. The default for functions.
    #[default]
    OnStart,
    /// When it signals readiness.
    ///
    /// A function calls [`Context::ready`](crate::Context::ready), a [`Child`](crate::Child) returns
    /// `Ok` from `activate`, and a supervisor has completed its first start.
    Signal,
}

string_enum!(
    Readiness, "readiness":
    OnStart = "on_start",
    Signal = "signal",
);

/// The reason why an incarnation was started.
///
/// ```
/// use verger::policy::StartCause;
/// use verger::{Context, Exit};
///
/// async fn indexer(ctx: Context) -> Exit {
///     if ctx.start_cause() == StartCause::Restart {
///         tracing::info!("reading the last checkpoint");
///     }
///     ctx.cancelled().await;
///     Ok(())
/// }
/// # drop(indexer);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartCause {
    /// Its supervisor started.
    Initial,
    /// A call started it, such as `start_child`, `restart` or `resume`.
    Manual,
    /// The previous incarnation exited, and the restart type restarts it.
    Restart,
    /// A sibling failed, and the strategy restarts both.
    Group,
    /// A message arrived for a child with [`start_on_message`](crate::ChildSpec::start_on_message).
    OnMessage,
    /// Its lease was granted again, after it had been lost.
    Lease,
}

string_enum!(
    StartCause, "start cause":
    Initial = "initial",
    Manual = "manual",
    Restart = "restart",
    Group = "group",
    OnMessage = "on_message",
    Lease = "lease",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sequential_retry_and_on_start() {
        assert_eq!(Start::default(), Start::Sequential);
        assert_eq!(FirstStart::default(), FirstStart::Retry);
        assert_eq!(Readiness::default(), Readiness::OnStart);
    }
}
