//! The failure callback of a supervisor: its input, its decision, and the shapes it may have.
//!
//! The input is a [`ChildFailure`], the output a [`FailureDecision`], at once or from a future. This
//! module turns a callback of any shape into one that is called in one way. The core and the driver
//! decide when it is called and what follows.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::strategy::Strategy;
use crate::exit::{ExitError, ExitReason};
use crate::panic::Foreign;
use crate::path::Path;
use crate::properties::Properties;

/// A failure that [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) decides on.
///
/// The example of [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildFailure {
    /// The child that failed.
    pub child: Path,
    /// The child's supervisor, which applies the decision. It differs from the supervisor that
    /// declares the callback if the callback is inherited.
    pub supervisor: Path,
    /// The type of the child or the function that it runs. `None` for a supervisor.
    pub type_name: Option<&'static str>,
    /// How the child failed.
    pub error: ExitReason,
    /// The number of the restart that would follow, counted from 1 since the child was last healthy.
    pub attempt: u32,
    /// The number of the run that failed, from 1.
    pub incarnation: u32,
    /// How many restarts the limit over time has granted within its period: the child's own limit, or its
    /// supervisor's if the child has none. A restart adds one. The status shows the same number.
    pub restarts_in_period: usize,
    /// How many restarts this limit grants within the period. `None`: any number.
    pub max_restarts: Option<u32>,
    /// The period of this limit.
    pub period: Duration,
    /// Which siblings restart with the child. A dynamic supervisor restarts each child alone.
    pub strategy: Strategy,
    pub(crate) properties: Properties,
}

impl ChildFailure {
    /// Returns the child's name, which is the last segment of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.child.name()
    }

    /// Returns the child's property of this type, if an earlier decision has set one.
    #[must_use]
    pub fn property<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.properties.get()
    }
}

/// What becomes of a child that has failed.
///
/// A `bool` converts into a decision: `true` restarts, `false` gives up.
///
/// The example of [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) returns one.
#[derive(Clone, Debug)]
#[must_use = "a decision does nothing until it is returned"]
pub struct FailureDecision {
    pub(crate) resolution: Resolution,
    pub(crate) changes: Properties,
}

/// What becomes of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resolution {
    Restart,
    GiveUp,
    Escalate,
}

impl FailureDecision {
    /// Restarts the child as if there were no callback.
    ///
    /// The restart limits, the backoff and the strategy of the supervisor apply.
    pub fn restart() -> Self {
        Self::of(Resolution::Restart)
    }

    /// Leaves the child [`Errored`](crate::Lifecycle::Errored), until
    /// [`resume`](crate::SupervisorHandle::resume) is called.
    ///
    /// The failure is not charged, and the siblings of the child keep running.
    pub fn give_up() -> Self {
        Self::of(Resolution::GiveUp)
    }

    /// Fails the supervisor as [`Escalated`](ExitReason::Escalated), with the child's reason.
    ///
    /// The supervisor stops its other children first. Its own supervisor then handles the failure.
    pub fn escalate() -> Self {
        Self::of(Resolution::Escalate)
    }

    fn of(resolution: Resolution) -> Self {
        Self { resolution, changes: Properties::default() }
    }

    /// Sets a property of the child, which its later incarnations read with
    /// [`Context::property`](crate::Context::property).
    ///
    /// A child has at most one property of each type: a later property of the same type replaces the
    /// earlier one. Properties are kept until the child is removed, or its supervisor ends.
    ///
    /// ```
    /// use verger::policy::{ChildFailure, FailureDecision};
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

/// The return value of a failure callback.
///
/// It is a [`FailureDecision`], a `bool`, or a `Result` of one of them. An error is logged, and the
/// failure escalates.
///
/// The example of [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) returns a decision, and a `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what becomes of a child that failed",
    label = "is not a decision",
    note = "return a `FailureDecision`, a `bool` (`true` restarts, `false` gives up), or a \
            `Result` of one of them"
)]
pub trait FailureOutcome: sealed::CallbackOutcome {
    /// Returns the decision.
    ///
    /// # Errors
    ///
    /// Returns the error that the callback returned instead of a decision.
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

/// A [`FailureOutcome`], or a future of one, so that a callback may be a function or an async function.
///
/// The compiler infers `When`, which distinguishes the two.
///
/// The example of [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) passes a function of either kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what becomes of a child that failed",
    label = "is neither a decision nor a future of one that is `Send`",
    note = "return a `FailureDecision`, a `bool` (`true` restarts, `false` gives up), or a \
            `Result` of one of them, from a function or an async function"
)]
pub trait FailureAnswer<When>: sealed::CallbackAnswer<When> {
    /// Returns a future of the decision.
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
    //! Prevents implementations outside of this crate.

    use super::{ExitError, FailureDecision, Future};

    pub trait CallbackOutcome {}

    impl CallbackOutcome for FailureDecision {}
    impl CallbackOutcome for bool {}
    impl<D: Into<FailureDecision>, E: Into<ExitError>> CallbackOutcome for Result<D, E> {}

    pub trait CallbackAnswer<When> {}

    impl<O: CallbackOutcome> CallbackAnswer<Now> for O {}
    impl<F: Future> CallbackAnswer<Later> for F {}

    /// The outcome is ready when the function returns.
    #[derive(Debug)]
    pub struct Now;

    /// The outcome is awaited.
    #[derive(Debug)]
    pub struct Later;
}

type Answered = Pin<Box<dyn Future<Output = Result<FailureDecision, ExitError>> + Send>>;

/// A callback of any shape.
#[derive(Clone)]
pub(crate) struct FailureCallback(Foreign<dyn Fn(ChildFailure) -> Answered + Send + Sync>);

impl FailureCallback {
    pub(crate) fn new<F, A, When>(decide: F) -> Self
    where
        F: Fn(ChildFailure) -> A + Send + Sync + 'static,
        A: FailureAnswer<When> + 'static,
        When: 'static,
    {
        Self(Foreign::new(Arc::new(move |failure| Box::pin(decide(failure).into_answer()))))
    }

    /// Calls the callback. It runs in this call, up to its first await point.
    pub(crate) fn ask(&self, failure: ChildFailure) -> Answered {
        (self.0)(failure)
    }
}

impl fmt::Debug for FailureCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureCallback")
    }
}
