//! Exits: what a child returns, and what its supervisor makes of it.
//!
//! [`Exit`] and [`ExitError`] are the child's side: it ended well, or with an error of any type.
//! [`ExitReason`] is the supervisor's: it also covers ends that a child can't return, such as a
//! panic or an abort. What follows from a reason is decided elsewhere.
//!
//! # Invariants
//!
//! 1. No text is lost: an error keeps all its causes, an escalation the reason it began with.
//! 2. An exit is clean or a failure, and nothing in between.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::panic::catch_panic;
use crate::path::Path;
use crate::policy::spelled;

/// What a child returns: that it is done, or the error that ended it.
pub type Exit = Result<(), ExitError>;

/// The error that ended a child.
///
/// Made by `?` or `into` from anything that converts into a `Box<dyn Error + Send + Sync>`: any
/// error type, `&str`, `String`, and the error types of anyhow and eyre. For this to work it
/// doesn't implement [`Error`] itself; [`as_error`](Self::as_error) gives one that does.
///
/// `Display` and `Debug` write the message and those of its causes, as in
/// `can't reach the database: connection refused`.
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
    Error(Kept),
    /// The end of a supervisor, which is more than an error.
    Reason(Box<ExitReason>),
}

/// Somebody's error, as long as anybody remembers it. It is forgotten anywhere: in a supervisor's turn,
/// by a child, by whoever listens. So if it panics then, that is the end of it, and of nothing else.
#[derive(Clone)]
struct Kept(Option<Arc<dyn Error + Send + Sync>>);

impl Drop for Kept {
    fn drop(&mut self) {
        let error = self.0.take();
        catch_panic(|| drop(error));
    }
}

impl ExitError {
    /// Declines to start, which is no failure: the child is stopped and not restarted.
    ///
    /// For a child that finds out while it is activated that it isn't needed, because a setting
    /// turns it off, for example. OTP's `ignore`. A child that is already active and returns it has
    /// ended normally and is not restarted either, whatever its restart type.
    #[must_use]
    pub const fn ignore() -> Self {
        Self(Inner::Ignore)
    }

    /// Whether this was made by [`ignore`](Self::ignore).
    #[must_use]
    pub const fn is_ignore(&self) -> bool {
        matches!(self.0, Inner::Ignore)
    }

    /// The error itself, or `None` if this was made by [`ignore`](Self::ignore).
    #[must_use]
    pub fn as_error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.0 {
            Inner::Ignore | Inner::Reason(_) => None,
            Inner::Error(Kept(error)) => error.as_deref(),
        }
    }

    /// The error with which a supervisor tells its own supervisor how it ended.
    pub(crate) fn from_reason(reason: ExitReason) -> Self {
        Self(Inner::Reason(Box::new(reason)))
    }

    /// How a child has ended that returned this.
    pub(crate) fn into_reason(self) -> ExitReason {
        match self.0 {
            Inner::Reason(reason) => *reason,
            _ => ExitReason::Failed(self),
        }
    }

    /// The error as an `E`, if that is what it was made from.
    ///
    /// An error that came wrapped, in an `anyhow::Error` for example, keeps its text and its
    /// causes, but not its type.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.as_error()?.downcast_ref()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ExitError {
    fn from(error: E) -> Self {
        Self(Inner::Error(Kept(Some(error.into().into()))))
    }
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0, self.as_error()) {
            // Also in the task of a supervisor, whose children a panic would take along.
            (_, Some(error)) => match catch_panic(|| chain(error)) {
                Some(text) => f.write_str(&text),
                None => f.write_str("an error that panics when it is shown"),
            },
            (Inner::Reason(reason), None) => fmt::Display::fmt(reason, f),
            (Inner::Ignore | Inner::Error(_), None) => f.write_str("declined to start"),
        }
    }
}

/// The same text as `Display`, so that `unwrap` and `main` show something readable.
impl fmt::Debug for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The message of `error` and of its causes, separated by `: `.
///
/// Many errors write their cause themselves; then it isn't repeated.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !ends_with_words(&text, &message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

/// Whether `text` ends with `words`, not counting a match that begins within a word.
fn ends_with_words(text: &str, words: &str) -> bool {
    text.strip_suffix(words)
        .is_some_and(|before| words.is_empty() || !before.ends_with(char::is_alphanumeric))
}

/// Why an incarnation of a child ended.
///
/// [`Normal`](Self::Normal) and [`Shutdown`](Self::Shutdown) are clean, and so is an
/// [`Exit`](Self::Exit) with code 0; everything else is a failure. `Display` writes the whole story down to the first cause; it is serialised as `kind`
/// (see [`kind`](Self::kind)) and `message` (the same story).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// It returned `Ok` without having been asked to stop.
    Normal,
    /// It was asked to stop, by its own supervisor, and ended.
    ///
    /// An error that merely looks like a cancellation, from a token of somebody else's, is
    /// [`Failed`](Self::Failed).
    Shutdown,
    /// It was active and returned an error.
    Failed(ExitError),
    /// It panicked, with this message.
    Panicked(String),
    /// It returned an error before it was active.
    ActivationFailed(ExitError),
    /// It wasn't active in the time that its spec allows.
    ActivationTimedOut,
    /// It missed the heartbeats that it had promised.
    Hung,
    /// Its health check found it unhealthy, for this reason, and says that this is a failure: see
    /// [`HealthCheck::restarts`](crate::HealthCheck::restarts).
    Unhealthy(String),
    /// It was aborted from outside: by `kill_child`, or because its runtime shut down.
    Aborted,
    /// It was aborted by its supervisor: its grace was over and it hadn't stopped, it has none, or
    /// the supervisor was aborted itself.
    Killed,
    /// It is a supervisor and gave up, because one of its children failed too often, or fails with
    /// one ([`OnExit::FailSupervisor`](crate::OnExit::FailSupervisor)).
    ///
    /// OTP says `shutdown` here, a clean end, and so loses transient supervisors silently.
    Escalated {
        /// The child.
        child: Path,
        /// How it ended, the last time.
        source: Arc<ExitReason>,
    },
    /// It is a supervisor, and the program is to end with this code, since a child failed too often
    /// for which that is what follows: see [`OnExhausted::Exit`](crate::OnExhausted::Exit). Its own
    /// supervisor ends with the same. Clean if the code is 0.
    Exit {
        /// The exit code of the program.
        code: u8,
        /// The child that failed, however far below.
        child: Path,
        /// How it ended, the last time.
        source: Arc<ExitReason>,
    },
}

impl ExitReason {
    /// Whether this is a clean end: [`Normal`](Self::Normal), [`Shutdown`](Self::Shutdown), or an
    /// [`Exit`](Self::Exit) with code 0.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.exit_kind().is_clean() || matches!(self, Self::Exit { code: 0, .. })
    }

    /// The code with which the program is to end because of this, if it is.
    pub(crate) const fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Exit { code, .. } => Some(*code),
            Self::Normal
            | Self::Shutdown
            | Self::Failed(_)
            | Self::Panicked(_)
            | Self::ActivationFailed(_)
            | Self::ActivationTimedOut
            | Self::Hung
            | Self::Unhealthy(_)
            | Self::Aborted
            | Self::Killed
            | Self::Escalated { .. } => None,
        }
    }

    /// The variant's name in snake case, for logs, metrics and files. It won't change.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.exit_kind().word()
    }

    /// Which variant it is, without what that holds.
    #[must_use]
    pub const fn exit_kind(&self) -> ExitKind {
        match self {
            Self::Normal => ExitKind::Normal,
            Self::Shutdown => ExitKind::Shutdown,
            Self::Failed(_) => ExitKind::Failed,
            Self::Panicked(_) => ExitKind::Panicked,
            Self::ActivationFailed(_) => ExitKind::ActivationFailed,
            Self::ActivationTimedOut => ExitKind::ActivationTimedOut,
            Self::Hung => ExitKind::Hung,
            Self::Unhealthy(_) => ExitKind::Unhealthy,
            Self::Aborted => ExitKind::Aborted,
            Self::Killed => ExitKind::Killed,
            Self::Escalated { .. } => ExitKind::Escalated,
            Self::Exit { .. } => ExitKind::Exit,
        }
    }

    /// The error it came from: that of the child, or of the one whose failure was escalated.
    pub(crate) fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        let mut reason = self;
        while let Self::Escalated { source, .. } | Self::Exit { source, .. } = reason {
            reason = source;
        }
        match reason {
            Self::Failed(error) | Self::ActivationFailed(error) => error.as_error(),
            Self::Normal
            | Self::Shutdown
            | Self::Panicked(_)
            | Self::ActivationTimedOut
            | Self::Hung
            | Self::Unhealthy(_)
            | Self::Aborted
            | Self::Killed
            | Self::Escalated { .. }
            | Self::Exit { .. } => None,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A loop and not a recursion, because a tree may be a thousand levels deep.
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
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::ActivationFailed(error) => write!(f, "activation failed: {error}"),
            Self::ActivationTimedOut => f.write_str("activation timed out"),
            Self::Hung => f.write_str("hung"),
            Self::Unhealthy(problem) => write!(f, "unhealthy: {problem}"),
            Self::Aborted => f.write_str("aborted"),
            Self::Killed => f.write_str("killed"),
            Self::Escalated { .. } | Self::Exit { .. } => {
                unreachable!("followed to its source above")
            }
        }
    }
}

/// The kinds of [`ExitReason`], each named like the variant it stands for.
///
/// Written and read as the words of [`ExitReason::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ExitKind {
    /// See [`ExitReason::Normal`].
    Normal,
    /// See [`ExitReason::Shutdown`].
    Shutdown,
    /// See [`ExitReason::Failed`].
    Failed,
    /// See [`ExitReason::Panicked`].
    Panicked,
    /// See [`ExitReason::ActivationFailed`].
    ActivationFailed,
    /// See [`ExitReason::ActivationTimedOut`].
    ActivationTimedOut,
    /// See [`ExitReason::Hung`].
    Hung,
    /// See [`ExitReason::Aborted`].
    Aborted,
    /// See [`ExitReason::Killed`].
    Killed,
    /// See [`ExitReason::Escalated`].
    Escalated,
    /// See [`ExitReason::Exit`].
    Exit,
    /// See [`ExitReason::Unhealthy`].
    Unhealthy,
}

impl ExitKind {
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Self; 12] = [
        Self::Normal,
        Self::Shutdown,
        Self::Failed,
        Self::Panicked,
        Self::ActivationFailed,
        Self::ActivationTimedOut,
        Self::Hung,
        Self::Aborted,
        Self::Killed,
        Self::Escalated,
        Self::Exit,
        Self::Unhealthy,
    ];

    /// Whether such an end is clean; see [`ExitReason::is_clean`].
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Normal | Self::Shutdown)
    }
}

spelled!(
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
);

impl Serialize for ExitReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ExitReason", 2)?;
        fields.serialize_field("kind", self.kind())?;
        fields.serialize_field("message", &format_args!("{self}"))?;
        fields.end()
    }
}

/// What a worker function may return: `()`, or a `Result<(), E>` whose error converts into
/// [`ExitError`].
///
/// Sealed: it can't be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "a worker can't return `{Self}`",
    label = "has to be `()` or `Result<(), E>`: there is nobody to receive a value",
    note = "return `()`, `Exit`, or `Result<(), E>` where `E` is an error type, `&str`, `String`, \
            or the error of anyhow or eyre",
    note = "an async closure that uses `?` has to name its type: `async |ctx| -> Exit {{ .. }}`",
    note = "a function that never returns may say that it returns `()`"
)]
pub trait Outcome: sealed::Sealed {
    /// What it means for the child.
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

#[cfg(test)]
mod tests {
    use std::{io, num};

    use super::*;

    fn refused() -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused")
    }

    /// An error with a text and a cause.
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Because {
        text: &'static str,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    }

    fn because(text: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Because {
        Because { text, cause: cause.into() }
    }

    #[test]
    fn the_question_mark_works_with_all_usual_errors() {
        fn std_error() -> Exit {
            Ok(Err(refused())?)
        }
        fn parse_error() -> Exit {
            "80a".parse::<u16>()?;
            Ok(())
        }
        fn str() -> Exit {
            Err("not yet")?
        }
        fn string() -> Exit {
            Err(format!("not before {}", 5))?
        }
        fn anyhow() -> Exit {
            Err(anyhow::Error::from(refused()).context("no database"))?
        }
        fn boxed() -> Exit {
            Err(Box::<dyn Error + Send + Sync>::from("boxed"))?
        }
        fn our_own() -> Exit {
            str()?;
            Ok(())
        }

        let table = [
            (std_error as fn() -> Exit, "connection refused"),
            (parse_error, "invalid digit found in string"),
            (str, "not yet"),
            (string, "not before 5"),
            (anyhow, "no database: connection refused"),
            (boxed, "boxed"),
            (our_own, "not yet"),
        ];
        for (worker, message) in table {
            assert_eq!(worker().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn an_error_keeps_its_type() {
        let error = ExitError::from(refused());
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);

        assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused));
        assert!(error.downcast_ref::<num::ParseIntError>().is_none());
        assert!(error.clone().downcast_ref::<io::Error>().is_some(), "a clone is the same error");
        assert_eq!(error.as_error().map(ToString::to_string).unwrap(), "connection refused");
        assert!(!error.is_ignore());
    }

    #[test]
    fn to_decline_is_no_error() {
        let error = ExitError::ignore();

        assert!(error.is_ignore());
        assert!(error.as_error().is_none());
        assert!(error.downcast_ref::<io::Error>().is_none());
        assert_eq!(error.to_string(), "declined to start");
    }

    #[test]
    fn an_error_is_written_with_its_causes_each_once() {
        let table = [
            (because("start", because("config", "no file")), "start: config: no file"),
            // They write their cause themselves.
            (because("config: no file", "no file"), "config: no file"),
            (because("a: b: c", because("b: c", "c")), "a: b: c"),
            (because("a: b", because("b", "c")), "a: b: c"),
            (because("no file", because("no file", "no file")), "no file"),
            // The cause isn't there, it only looks like it.
            (because("error 11", "1"), "error 11: 1"),
            (because("no file here", "no file"), "no file here: no file"),
            (because("silent cause", ""), "silent cause"),
        ];
        for (error, message) in table {
            let error = ExitError::from(error);
            assert_eq!(error.to_string(), message);
            assert_eq!(format!("{error:?}"), message);
        }
    }

    /// One of each reason, with what is true for it.
    fn reasons() -> [(ExitReason, &'static str, bool, &'static str); 13] {
        let app = Path::root("app");
        let failed = ExitReason::Failed(because("no database", refused()).into());
        let pool =
            ExitReason::Escalated { child: app.join("db").join("pool"), source: failed.into() };
        [
            (ExitReason::Normal, "normal", true, "ended normally"),
            (ExitReason::Shutdown, "shutdown", true, "shut down"),
            (ExitReason::Failed(refused().into()), "failed", false, "failed: connection refused"),
            (ExitReason::Panicked("boom".into()), "panicked", false, "panicked: boom"),
            (
                ExitReason::ActivationFailed("no port".into()),
                "activation_failed",
                false,
                "activation failed: no port",
            ),
            (ExitReason::ActivationTimedOut, "activation_timed_out", false, "activation timed out"),
            (ExitReason::Hung, "hung", false, "hung"),
            (ExitReason::Aborted, "aborted", false, "aborted"),
            (ExitReason::Killed, "killed", false, "killed"),
            (
                pool.clone(),
                "escalated",
                false,
                "escalated: child app/db/pool: failed: no database: connection refused",
            ),
            (
                ExitReason::Escalated { child: app.join("db"), source: pool.into() },
                "escalated",
                false,
                "escalated: child app/db: escalated: child app/db/pool: failed: no database: \
                 connection refused",
            ),
            (
                ExitReason::Exit {
                    code: 3,
                    child: app.join("db"),
                    source: ExitReason::Hung.into(),
                },
                "exit",
                false,
                "exit 3: child app/db: hung",
            ),
            (ExitReason::Unhealthy("no ping".into()), "unhealthy", false, "unhealthy: no ping"),
        ]
    }

    #[test]
    fn only_normal_and_shutdown_are_clean() {
        for (reason, kind, clean, _) in reasons() {
            assert_eq!(reason.is_clean(), clean, "{kind}");
        }
    }

    #[test]
    fn a_reason_tells_its_kind_and_its_whole_story() {
        for (reason, kind, _, message) in reasons() {
            assert_eq!(reason.kind(), kind);
            assert_eq!(reason.exit_kind().to_string(), kind);
            assert_eq!(serde_json::to_value(reason.exit_kind()).unwrap(), kind);
            let read: ExitKind = serde_json::from_value(kind.into()).unwrap();
            assert_eq!(read, reason.exit_kind());
            assert_eq!(reason.to_string(), message);
            assert_eq!(
                serde_json::to_value(&reason).unwrap(),
                serde_json::json!({ "kind": kind, "message": message }),
            );
        }
    }

    #[test]
    fn each_kind_is_listed_at_its_number() {
        for (number, kind) in ExitKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind}");
        }
        let mut kinds = reasons().map(|(reason, ..)| reason.exit_kind()).to_vec();
        kinds.dedup();
        assert_eq!(kinds, ExitKind::ALL);
    }

    #[test]
    fn a_story_may_be_a_thousand_levels_long() {
        let mut reason = ExitReason::Hung;
        for _ in 0..1_000 {
            reason = ExitReason::Escalated { child: Path::root("a"), source: reason.into() };
        }

        assert_eq!(reason.to_string(), "escalated: child a: ".repeat(1_000) + "hung");
    }

    #[test]
    fn a_worker_may_return_nothing_or_a_result() {
        assert!(().into_exit().is_ok());
        assert!(Ok::<_, ExitError>(()).into_exit().is_ok());
        assert!(Ok::<_, io::Error>(()).into_exit().is_ok());

        let returned: [Exit; 5] = [
            Err(refused()).into_exit(),
            Err("connection refused").into_exit(),
            Err("connection refused".to_owned()).into_exit(),
            Err(anyhow::Error::from(refused())).into_exit(),
            Err(ExitError::from(refused())).into_exit(),
        ];
        for exit in returned {
            assert_eq!(exit.unwrap_err().to_string(), "connection refused");
        }
        assert!(Err(ExitError::ignore()).into_exit().is_err_and(|error| error.is_ignore()));
    }

    #[test]
    fn the_end_of_a_supervisor_reaches_its_own_as_what_it_was() {
        for (reason, kind, _, message) in reasons() {
            let told = ExitError::from_reason(reason);
            assert_eq!(told.to_string(), message);
            assert!(told.as_error().is_none(), "{kind}");
            let heard = told.into_reason();
            assert_eq!((heard.kind(), heard.to_string()), (kind, message.to_owned()));
        }
        assert_eq!(ExitError::from("no").into_reason().to_string(), "failed: no");
    }

    #[test]
    fn what_ends_a_child_can_be_passed_between_threads() {
        fn shareable<T: Send + Sync + 'static>() {}
        shareable::<ExitError>();
        shareable::<ExitReason>();
    }
}
