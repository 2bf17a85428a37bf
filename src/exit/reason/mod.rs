//! Exits: what a child returns, and what its supervisor records.
//!
//! A child returns an [`Exit`], which is `Ok` or an [`ExitError`]. Its supervisor records an
//! [`ExitReason`], which also covers exits that a child can't return, such as a panic or an abort.
//!
//! # Invariants
//!
//! 1. An error keeps all of its causes, and an escalation keeps the reason that it started with.
//! 2. Every exit is either clean or a failure.

#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::human_duration::HumanDuration;
use crate::panic::{Foreign, PanicMessage, catch_panic};
use crate::path::Path;
use crate::start_of::cut;
use crate::string_enum::string_enum;

/// The result of a child: `Ok` when it is done, or the error that ended it.
///
/// ```
/// use verger::{Context, Exit};
///
/// async fn check(ctx: Context) -> Exit {
///     let port: u16 = "7000".parse()?;
///     ctx.set_status(format!("port {port}"));
///     ctx.cancelled().await;
///     Ok(())
/// }
/// # drop(check);
/// ```
pub type Exit = Result<(), ExitError>;

/// The error that ended a child.
///
/// Created by `?` or `into` from anything that converts into a `Box<dyn Error + Send + Sync>`: any
/// error type, `&str`, `String`, and the error types of anyhow and eyre. This conversion is
/// possible only because `ExitError` doesn't implement [`Error`] itself. Use
/// [`as_error`](Self::as_error) where an [`Error`] is needed.
///
/// `Display` and `Debug` write the message and the messages of its causes, as in
/// `can't reach the database: connection refused`. They write at most 2 KiB, because the text is part of log lines,
/// events and views; [`as_error`](Self::as_error) returns the error itself.
///
/// ```
/// use verger::{Context, Exit};
///
/// async fn check(ctx: Context) -> Exit {
///     let port: u16 = "80a".parse()?;
///     if port < 1024 {
///         return Err("the port is reserved".into());
///     }
///     ctx.cancelled().await;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct ExitError(Inner);

#[derive(Clone)]
enum Inner {
    Ignore,
    Error(Foreign<dyn Error + Send + Sync>),
    /// An error that no restart can mend.
    Fatal(Foreign<dyn Error + Send + Sync>),
    /// The exit of a supervisor, passed to its own supervisor as it is.
    Reason(Box<ExitReason>),
}

impl ExitError {
    /// Declines to start: the child is stopped without a failure, and isn't restarted.
    ///
    /// Return it from the activation of a child that isn't needed, for example because a setting
    /// disables it. If an active child returns it, the exit is `Normal` and the child isn't
    /// restarted either, regardless of its restart type. This is OTP's `ignore`.
    #[must_use]
    pub const fn ignore() -> Self {
        Self(Inner::Ignore)
    }

    /// Marks an error as one that no restart can mend, such as a port that is in use.
    ///
    /// The child isn't restarted. Its failure is the failure of its supervisor, which stops its other
    /// children in reverse order and fails with the same error, and so does each supervisor above. At
    /// the root, [`run`](crate::Supervisor::run) returns
    /// [`RunError::GaveUp`](crate::RunError::GaveUp) with the error and its causes.
    ///
    /// The mark counts where the child would be restarted otherwise: in its activation, before it is
    /// ready, and while it is active, whatever its backoff and limits. A trigger that leaves the child down
    /// after this failure still does so: a temporary child fails alone, and
    /// [`leave_down_if`](crate::ChildSpec::leave_down_if) or an
    /// [`on_exit`](crate::ChildSpec::on_exit) on a supervisor above contains the failure. A failed
    /// start that is returned to the caller of [`start_child`](crate::SupervisorHandle::start_child) or
    /// [`restart_child`](crate::OtpCalls::restart_child) fails only that call.
    ///
    /// ```
    /// use std::io;
    ///
    /// use tokio::net::TcpListener;
    /// use verger::{Context, Exit, ExitError, RunError, Supervisor, worker_with};
    ///
    /// async fn listen(ctx: Context, port: u16) -> Exit {
    ///     let listener = TcpListener::bind(("127.0.0.1", port)).await;
    ///     let listener = listener.map_err(|error| match error.kind() {
    ///         io::ErrorKind::AddrInUse => ExitError::fatal(error),
    ///         _ => error.into(),
    ///     })?;
    ///     ctx.cancelled().await;
    ///     drop(listener);
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let other = TcpListener::bind("127.0.0.1:0").await?;
    /// let port = other.local_addr()?.port();
    /// let app = Supervisor::builder("app").child(worker_with("http", port, listen)).build()?;
    /// let error = app.run().await.unwrap_err();
    /// assert!(matches!(error, RunError::GaveUp { .. }));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fatal(error: impl Into<Self>) -> Self {
        let error = error.into();
        match error.0 {
            Inner::Error(error) => Self(Inner::Fatal(error)),
            // Nothing else has an error.
            inner @ (Inner::Ignore | Inner::Fatal(_) | Inner::Reason(_)) => Self(inner),
        }
    }

    /// Returns `true` if this is the value of [`fatal`](Self::fatal).
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self.0, Inner::Fatal(_))
    }

    /// Returns `true` if this is the value of [`ignore`](Self::ignore).
    #[must_use]
    pub const fn is_ignore(&self) -> bool {
        matches!(self.0, Inner::Ignore)
    }

    /// Returns the error, or `None` for the value of [`ignore`](Self::ignore).
    #[must_use]
    pub fn as_error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.0 {
            Inner::Ignore | Inner::Reason(_) => None,
            Inner::Error(error) | Inner::Fatal(error) => Some(&**error),
        }
    }

    /// Wraps the exit reason of a supervisor, as the result for its own supervisor.
    pub(crate) fn from_reason(reason: ExitReason) -> Self {
        Self(Inner::Reason(Box::new(reason)))
    }

    /// Whether the child has panicked.
    pub(crate) fn is_panic(&self) -> bool {
        matches!(&self.0, Inner::Reason(reason) if matches!(**reason, ExitReason::Panicked(_)))
    }

    /// Returns the exit reason of a child that returned this error.
    pub(crate) fn into_reason(self) -> ExitReason {
        match self.0 {
            Inner::Reason(reason) => *reason,
            _ => ExitReason::Failed(self),
        }
    }

    /// Returns the error as an `E`, if it was created from an `E`.
    ///
    /// An error that was wrapped before, for example in an `anyhow::Error`, keeps its message and
    /// its causes, but not its type.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.as_error()?.downcast_ref()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ExitError {
    fn from(error: E) -> Self {
        Self(Inner::Error(Foreign::new(error.into().into())))
    }
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0, self.as_error()) {
            // A panic here would end the task of a supervisor, which logs errors.
            (_, Some(error)) => match catch_panic(|| cut(chain(error))) {
                Some(text) => f.write_str(&text),
                None => f.write_str("an error that panics when it is displayed"),
            },
            (Inner::Reason(reason), None) => fmt::Display::fmt(reason, f),
            (Inner::Ignore | Inner::Error(_) | Inner::Fatal(_), None) => {
                f.write_str("declined to start")
            }
        }
    }
}

/// Writes the text of `Display`, for `unwrap` and `fn main() -> Result`.
impl fmt::Debug for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why an incarnation of a child ended.
///
/// [`Normal`](Self::Normal), [`Shutdown`](Self::Shutdown) and an [`Exit`](Self::Exit) with code 0
/// are clean. Everything else is a failure. `Display` writes the whole chain of causes. The
/// serialised form has two fields: `kind` (see [`kind`](Self::kind)) and `message` (the text of
/// `Display`).
///
/// ```
/// use verger::{ExitKind, ExitReason};
///
/// let failed = ExitReason::Failed("connection refused".into());
/// assert!(!failed.is_clean());
/// assert_eq!(failed.exit_kind(), ExitKind::Failed);
/// assert_eq!(failed.to_string(), "failed: connection refused");
/// assert!(ExitReason::Normal.is_clean());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// The child returned `Ok` without having been cancelled.
    Normal,
    /// The child was cancelled by its supervisor and ended within its grace.
    ///
    /// An error that reports the cancellation of a different token is [`Failed`](Self::Failed).
    Shutdown,
    /// The active child returned an error.
    Failed(ExitError),
    /// The child panicked with this message. Its [location](PanicMessage::location) is known after
    /// [`install_panic_hook`](crate::install_panic_hook).
    Panicked(PanicMessage),
    /// The child returned an error before it was active.
    ActivationFailed(ExitError),
    /// The child wasn't active within its activation timeout.
    ActivationTimedOut,
    /// The active child sent no heartbeat for this long, its
    /// [`watchdog`](crate::ChildSpec::watchdog).
    Hung(Duration),
    /// The active child ran for longer than this, its [`run_time_limit`](crate::ChildSpec::run_time_limit), or one
    /// run of a periodic child took longer than its limit.
    TimedOut(Duration),
    /// The health check failed with this reason, and
    /// [`HealthCheck::restarts`](crate::HealthCheck::restarts) makes that a failure of the child.
    Unhealthy(String),
    /// The child was aborted by [`kill`](crate::SupervisorHandle::kill), or because its runtime shut down.
    Aborted,
    /// The child was aborted by its supervisor, after its grace, without a grace, or because the
    /// supervisor was aborted itself.
    Killed,
    /// The child is a supervisor and gave up, or [a worker whose own supervisor](crate::Context::children) did:
    /// a child below exceeded a restart limit, or its exit fails the supervisor ([`OnExit::FailSupervisor`](crate::policy::OnExit::FailSupervisor)).
    ///
    /// In OTP this is `shutdown`, a clean exit, so a transient supervisor that gives up isn't
    /// restarted there.
    Escalated {
        /// The child whose failure was the last one.
        child: Path,
        /// The reason of its last exit.
        source: Arc<ExitReason>,
    },
    /// The child is a supervisor below which a child exceeded its limit under
    /// [`OnExhausted::Exit`](crate::policy::OnExhausted::Exit), which ends the program with this code.
    ///
    /// Each supervisor above ends with the same reason. It is clean if the code is 0.
    Exit {
        /// The exit code of the program.
        code: u8,
        /// The child that failed, on any level below.
        child: Path,
        /// The reason of its last exit.
        source: Arc<ExitReason>,
    },
}

impl ExitReason {
    /// Returns `true` for [`Normal`](Self::Normal), [`Shutdown`](Self::Shutdown), and an
    /// [`Exit`](Self::Exit) with code 0.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Normal | Self::Shutdown | Self::Exit { code: 0, .. })
    }

    /// Returns the exit code of the program, if this reason ends it.
    pub(crate) const fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Exit { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns the name of the variant in snake case, a stable identifier for logs and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.exit_kind().word()
    }

    /// Returns the variant without its values.
    #[must_use]
    pub const fn exit_kind(&self) -> ExitKind {
        match self {
            Self::Normal => ExitKind::Normal,
            Self::Shutdown => ExitKind::Shutdown,
            Self::Failed(_) => ExitKind::Failed,
            Self::Panicked(_) => ExitKind::Panicked,
            Self::ActivationFailed(_) => ExitKind::ActivationFailed,
            Self::ActivationTimedOut => ExitKind::ActivationTimedOut,
            Self::Hung(_) => ExitKind::Hung,
            Self::TimedOut(_) => ExitKind::TimedOut,
            Self::Unhealthy(_) => ExitKind::Unhealthy,
            Self::Aborted => ExitKind::Aborted,
            Self::Killed => ExitKind::Killed,
            Self::Escalated { .. } => ExitKind::Escalated,
            Self::Exit { .. } => ExitKind::Exit,
        }
    }

    /// Returns the error of the child, or of the child whose failure was escalated.
    pub(crate) fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.exit_error()?.as_error()
    }

    /// Whether the error of the child, or of the child whose failure was escalated, is
    /// [fatal](ExitError::fatal).
    pub(crate) fn is_fatal(&self) -> bool {
        self.exit_error().is_some_and(ExitError::is_fatal)
    }

    fn exit_error(&self) -> Option<&ExitError> {
        let mut reason = self;
        while let Self::Escalated { source, .. } | Self::Exit { source, .. } = reason {
            reason = source;
        }
        match reason {
            Self::Failed(error) | Self::ActivationFailed(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A loop instead of recursion: a tree can be thousands of levels deep.
        let mut reason = self;
        loop {
            match reason {
                Self::Escalated { child, source } => {
                    write!(f, "escalated: child {child}: ")?;
                    reason = source;
                }
                Self::Exit { code, child, source } => {
                    write!(f, "exit {code}: child {child}: ")?;
                    reason = source;
                }
                _ => break,
            }
        }
        match reason {
            Self::Normal => f.write_str("ended normally"),
            Self::Shutdown => f.write_str("shut down"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(panic) if panic.location().is_some() => write!(f, "panicked at {panic}"),
            Self::Panicked(panic) => write!(f, "panicked: {panic}"),
            Self::ActivationFailed(error) => write!(f, "activation failed: {error}"),
            Self::ActivationTimedOut => f.write_str("activation timed out"),
            Self::Hung(interval) => write!(f, "hung: no heartbeat for {interval:?}"),
            Self::TimedOut(limit) => write!(f, "ran for longer than {}", HumanDuration(*limit)),
            Self::Unhealthy(problem) => write!(f, "unhealthy: {problem}"),
            Self::Aborted => f.write_str("aborted"),
            Self::Killed => f.write_str("killed"),
            Self::Escalated { .. } | Self::Exit { .. } => {
                unreachable!("the loop ends at another variant")
            }
        }
    }
}

/// The kind of an [`ExitReason`](crate::ExitReason): its variant without the values in it.
///
/// Displayed, written and read as the words of [`ExitReason::kind`](crate::ExitReason::kind).
///
/// The example of [`kill`](crate::SupervisorHandle::kill) compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ExitKind {
    /// See [`ExitReason::Normal`](crate::ExitReason::Normal).
    Normal,
    /// See [`ExitReason::Shutdown`](crate::ExitReason::Shutdown).
    Shutdown,
    /// See [`ExitReason::Failed`](crate::ExitReason::Failed).
    Failed,
    /// See [`ExitReason::Panicked`](crate::ExitReason::Panicked).
    Panicked,
    /// See [`ExitReason::ActivationFailed`](crate::ExitReason::ActivationFailed).
    ActivationFailed,
    /// See [`ExitReason::ActivationTimedOut`](crate::ExitReason::ActivationTimedOut).
    ActivationTimedOut,
    /// See [`ExitReason::Hung`](crate::ExitReason::Hung).
    Hung,
    /// See [`ExitReason::Aborted`](crate::ExitReason::Aborted).
    Aborted,
    /// See [`ExitReason::Killed`](crate::ExitReason::Killed).
    Killed,
    /// See [`ExitReason::Escalated`](crate::ExitReason::Escalated).
    Escalated,
    /// See [`ExitReason::Exit`](crate::ExitReason::Exit).
    Exit,
    /// See [`ExitReason::Unhealthy`](crate::ExitReason::Unhealthy).
    Unhealthy,
    /// See [`ExitReason::TimedOut`](crate::ExitReason::TimedOut).
    TimedOut,
}

impl ExitKind {
    /// Whether an exit of this kind is clean. See [`ExitReason::is_clean`].
    ///
    /// [`ExitReason::is_clean`]: crate::ExitReason::is_clean
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Normal | Self::Shutdown)
    }
}

string_enum!(
    ExitKind, "kind of exit":
    Normal = "normal",
    Shutdown = "shutdown",
    Failed = "failed",
    Panicked = "panicked",
    ActivationFailed = "activation_failed",
    ActivationTimedOut = "activation_timed_out",
    Hung = "hung",
    Aborted = "aborted",
    Killed = "killed",
    Escalated = "escalated",
    Exit = "exit",
    Unhealthy = "unhealthy",
    TimedOut = "timed_out",
);

/// The return types of worker functions: `()`, or a `Result<(), E>` with an error that converts
/// into [`ExitError`].
///
/// This trait is sealed and can't be implemented outside of this crate.
///
/// ```
/// use verger::{Context, Exit, worker};
///
/// async fn endless(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// async fn fallible(_ctx: Context) -> Exit {
///     Err("connection refused".into())
/// }
///
/// async fn with_own_error(_ctx: Context) -> Result<(), std::io::Error> {
///     std::fs::create_dir_all("/tmp/spool")
/// }
///
/// let specs = [worker("a", endless), worker("b", fallible), worker("c", with_own_error)];
/// # drop(specs);
/// ```
#[diagnostic::on_unimplemented(
    message = "a worker can't return `{Self}`",
    label = "expected `()` or `Result<(), E>`: a supervisor doesn't use the value",
    note = "return `()`, `Exit`, or `Result<(), E>` where `E` is an error type, `&str`, `String`, \
            or the error of anyhow or eyre",
    note = "an async closure that uses `?` has to name its type: `async |ctx| -> Exit {{ .. }}`",
    note = "a function that never returns can declare the return type `()`"
)]
pub trait Outcome: sealed::Sealed {
    /// Converts the returned value into an [`Exit`].
    fn into_exit(self) -> Exit;
}

impl Outcome for () {
    fn into_exit(self) -> Exit {
        Ok(())
    }
}

impl<E: Into<ExitError>> Outcome for Result<(), E> {
    fn into_exit(self) -> Exit {
        self.map_err(Into::into)
    }
}

mod sealed {
    /// Keeps [`Outcome`](super::Outcome) to this crate.
    pub trait Sealed {}

    impl Sealed for () {}

    impl<E: Into<super::ExitError>> Sealed for Result<(), E> {}
}

/// The most causes that are looked at. An error may be its own cause, by mistake.
const MAX_CAUSES: usize = 100;

/// Returns `error`, its cause, the cause of that, and so on.
pub(crate) fn with_causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source()).take(1 + MAX_CAUSES)
}

/// Joins the messages of `error` and its causes with `: `.
///
/// Many errors include the message of their cause. It isn't repeated then.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in with_causes(error).skip(1) {
        let message = cause.to_string();
        if !includes(&text, &message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text
}

/// Whether `text` includes `words` as a message: up to its end, to a `:` or to the end of a parenthesis.
fn includes(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        let begins = words.is_empty() || !before.ends_with(char::is_alphanumeric);
        begins && (after.is_empty() || after.starts_with([':', ')']))
    })
}
