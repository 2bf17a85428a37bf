//! The errors of calls and registrations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::path::Path;

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
