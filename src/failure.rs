//! What a supervisor's callback is told of a child's failure, and what it answers.
//!
//! A [`ChildFailure`] goes in, a [`FailureDecision`] comes out, at once or later. Who is asked, when,
//! and what follows is the machine's and the driver's business; here is only how a callback of any
//! shape becomes one that is asked in one way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::{ExitError, ExitReason};
use crate::path::Path;
use crate::policy::Strategy;
use crate::properties::Properties;

/// A failure that [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) decides on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildFailure {
    /// The child that failed.
    pub child: Path,
    /// Its supervisor, which carries out what is decided. Another one than the callback belongs to
    /// if that was inherited.
    pub supervisor: Path,
    /// The type of the child, or the function that it runs, as far as that is known: not of a
    /// supervisor.
    pub type_name: Option<&'static str>,
    /// How it failed.
    pub error: ExitReason,
    /// Which attempt a restart would be since the child was last healthy, from 1.
    pub attempt: u32,
    /// The number of the run that failed, from 1.
    pub incarnation: u32,
    /// How many restarts count just now for the supervisor's intensity. A restart adds one.
    pub restarts_in_period: usize,
    /// How many may; `None`: any number.
    pub max_restarts: Option<u32>,
    /// In what time.
    pub period: Duration,
    /// Who is restarted with it. A dynamic supervisor restarts each child by itself.
    pub strategy: Strategy,
    pub(crate) properties: Properties,
}

impl ChildFailure {
    /// The child's own name, which is the last part of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.child.name()
    }

    /// The child's property of this type, if an earlier decision has given it one.
    #[must_use]
    pub fn property<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.properties.get()
    }
}

/// What becomes of a child that has failed.
///
/// A `bool` is one, too: `true` restarts, `false` gives up.
#[derive(Clone, Debug)]
#[must_use = "a decision does nothing until it is returned"]
pub struct FailureDecision {
    pub(crate) resolution: Resolution,
    pub(crate) changes: Properties,
}

/// The three things that can become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resolution {
    Restart,
    GiveUp,
    Escalate,
}

impl FailureDecision {
    /// Restarts the child as if nobody had been asked: if the restart intensity allows it, after
    /// its backoff, and together with whom its strategy restarts with it.
    pub fn restart() -> Self {
        Self::of(Resolution::Restart)
    }

    /// Leaves the child down, [`Errored`](crate::Lifecycle::Errored), until
    /// [`retry`](crate::SupervisorHandle::retry). Nothing is counted, and its siblings go on.
    pub fn give_up() -> Self {
        Self::of(Resolution::GiveUp)
    }

    /// Stops the supervisor, which fails as [`Escalated`](ExitReason::Escalated) with the child's
    /// reason, so that its own supervisor has to cope.
    pub fn escalate() -> Self {
        Self::of(Resolution::Escalate)
    }

    fn of(resolution: Resolution) -> Self {
        Self { resolution, changes: Properties::default() }
    }

    /// Gives the child a property, which all its later incarnations can read with
    /// [`Context::property`](crate::Context::property).
    ///
    /// It has one of each type: a later one of the same type replaces it. They are kept until the
    /// child is forgotten, or its supervisor ends.
    ///
    /// ```
    /// use verger::{ChildFailure, FailureDecision};
    ///
    /// struct Endpoint(&'static str);
    ///
    /// fn fall_back(failure: ChildFailure) -> FailureDecision {
    ///     match failure.attempt {
    ///         1 => FailureDecision::restart(),
    ///         _ => FailureDecision::restart().with(Endpoint("backup.example.com")),
    ///     }
    /// }
    /// # drop(fall_back);
    /// ```
    pub fn with<T: Send + Sync + 'static>(mut self, property: T) -> Self {
        self.changes.set(Arc::new(property));
        self
    }
}

#[cfg(test)]
impl From<Resolution> for FailureDecision {
    fn from(resolution: Resolution) -> Self {
        Self::of(resolution)
    }
}

impl From<bool> for FailureDecision {
    fn from(restart: bool) -> Self {
        if restart { Self::restart() } else { Self::give_up() }
    }
}

/// What a callback may decide: a [`FailureDecision`], a `bool`, or a `Result` of one of them, whose
/// error is logged and escalates.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what becomes of a child that failed",
    label = "is not a decision",
    note = "return a `FailureDecision`, a `bool` (`true` restarts, `false` gives up), or a \
            `Result` of one of them"
)]
pub trait FailureOutcome: sealed::Outcome {
    /// The decision.
    ///
    /// # Errors
    ///
    /// What kept the callback from deciding.
    fn into_decision(self) -> Result<FailureDecision, ExitError>;
}

impl FailureOutcome for FailureDecision {
    fn into_decision(self) -> Result<FailureDecision, ExitError> {
        Ok(self)
    }
}

impl FailureOutcome for bool {
    fn into_decision(self) -> Result<FailureDecision, ExitError> {
        Ok(self.into())
    }
}

impl<D: Into<FailureDecision>, E: Into<ExitError>> FailureOutcome for Result<D, E> {
    fn into_decision(self) -> Result<FailureDecision, ExitError> {
        self.map(Into::into).map_err(Into::into)
    }
}

/// A [`FailureOutcome`], or a future of one. So a callback may be a plain function or an async one.
///
/// `When` tells the two apart and is found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what becomes of a child that failed",
    label = "is neither a decision nor a future of one that is `Send`",
    note = "return a `FailureDecision`, a `bool` (`true` restarts, `false` gives up), or a \
            `Result` of one of them, from a function or an async function"
)]
pub trait FailureAnswer<When>: sealed::Answer<When> {
    /// The decision, now or later.
    fn into_answer(self) -> impl Future<Output = Result<FailureDecision, ExitError>> + Send;
}

impl<O: FailureOutcome + Send> FailureAnswer<sealed::Now> for O {
    fn into_answer(self) -> impl Future<Output = Result<FailureDecision, ExitError>> + Send {
        std::future::ready(self.into_decision())
    }
}

impl<F> FailureAnswer<sealed::Later> for F
where
    F: Future<Output: FailureOutcome> + Send,
{
    async fn into_answer(self) -> Result<FailureDecision, ExitError> {
        self.await.into_decision()
    }
}

mod sealed {
    //! Keeps the traits to this crate.

    use super::{ExitError, FailureDecision, Future};

    pub trait Outcome {}

    impl Outcome for FailureDecision {}
    impl Outcome for bool {}
    impl<D: Into<FailureDecision>, E: Into<ExitError>> Outcome for Result<D, E> {}

    pub trait Answer<When> {}

    impl<O: Outcome> Answer<Now> for O {}
    impl<F: Future> Answer<Later> for F {}

    /// It is there when the function returns.
    #[derive(Debug)]
    pub struct Now;

    /// It is awaited.
    #[derive(Debug)]
    pub struct Later;
}

type Answered = Pin<Box<dyn Future<Output = Result<FailureDecision, ExitError>> + Send>>;

/// A callback of any shape.
#[derive(Clone)]
pub(crate) struct FailureCallback(Arc<dyn Fn(ChildFailure) -> Answered + Send + Sync>);

impl FailureCallback {
    pub(crate) fn new<F, A, When>(decide: F) -> Self
    where
        F: Fn(ChildFailure) -> A + Send + Sync + 'static,
        A: FailureAnswer<When> + 'static,
        When: 'static,
    {
        Self(Arc::new(move |failure| Box::pin(decide(failure).into_answer())))
    }

    /// Asks. The callback itself runs in this call, up to its first await point.
    pub(crate) fn ask(&self, failure: ChildFailure) -> Answered {
        (self.0)(failure)
    }
}

impl fmt::Debug for FailureCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureCallback")
    }
}
