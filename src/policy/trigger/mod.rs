//! Triggers: what the exit of a child leads to.
//!
//! A [`Trigger`] is a [`RestartType`] with exceptions for kinds of exits and for errors. It answers
//! with an [`OnExit`], from the reason of the exit and whether the child was active. It isn't
//! evaluated for a child that was cancelled.
//!
//! # Invariants
//!
//! 1. Of several rules that match, the first in this order decides: an exception for an error that
//!    doesn't restart, an exception for an error that does, an exception for a kind of exit,
//!    `activation_only`, the restart type.
//! 2. A predicate about an error that panics doesn't match.

mod exceptions;
#[cfg(test)]
mod tests;

use std::error::Error;

pub(crate) use self::exceptions::Exceptions;
use super::{OnExit, RestartType};
use crate::exit::{ExitKind, ExitReason};

/// A rule for what each exit of a child leads to: a [`RestartType`], and exceptions to it.
///
/// A supervisor evaluates the trigger when a child exits by itself. A child that was cancelled (by
/// a call, with its group, or because its supervisor ends) is never restarted. The trigger isn't
/// evaluated for a failed start that is returned to the caller of `start_child` or `restart_child`,
/// or that fails the first start ([`FirstStart::Fail`](crate::policy::FirstStart::Fail)).
///
/// The first rule that matches decides. The order is that of systemd: `RestartPreventExitStatus`,
/// `RestartForceExitStatus`, `Restart`.
///
/// 1. an exception for the error that *doesn't* restart the child: [`stop_if`](Self::stop_if), or
///    [`on_error`](Self::on_error) with an answer other than a restart. The first call wins.
/// 2. an exception for the error that restarts the child: [`restart_if`](Self::restart_if), or
///    [`on_error`](Self::on_error) with [`OnExit::RestartUncharged`]. The first call wins.
/// 3. an exception for the kind of the exit: [`on`](Self::on), [`on_failure`](Self::on_failure).
///    The last call wins.
/// 4. [`activation_only`](Self::activation_only).
/// 5. the restart type.
///
/// ```
/// use std::io;
///
/// use verger::policy::{OnExit, Trigger};
/// use verger::{Context, Exit, ExitKind, RestartType, Supervisor, worker};
///
/// async fn import(ctx: Context) -> Exit {
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// let trigger = Trigger::from(RestartType::Transient)
///     .stop_if(|error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied)
///     .on(ExitKind::Panicked, OnExit::FailSupervisor);
///
/// let app = Supervisor::builder("app").child(worker("import", import).restart(trigger)).build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
///
/// # Errors as a criterion
///
/// A predicate about errors applies if the child returned an error, or is a supervisor that gave up
/// on a child that returned one. It is called for the error itself and for each of its causes (see
/// [`Error::source`]) that has the type of the predicate. An error that was created from a string
/// has no such type.
///
/// Predicates run in the task of the supervisor, sometimes more than once for an exit. They must
/// not block, and should depend on nothing but the error. A panic is caught and counts as `false`.
///
/// Two triggers are equal if they share their predicates, that is, if one is a clone of the other.
///
/// # In a file
///
/// With the feature `serde`, a restart type as a word, or a table with exceptions to it. All keys are optional; without
/// `type` it is permanent. Predicates about errors are code: they are written as the names of their
/// types, and can't be read.
///
/// ```
/// use verger::policy::{OnExit, Trigger};
/// use verger::{ExitKind, RestartType};
///
/// # #[cfg(feature = "serde")]
/// # fn read() -> Result<(), toml::de::Error> {
/// let word: Trigger = toml::Value::from("transient").try_into()?;
/// assert_eq!(word, RestartType::Transient.into());
///
/// let table: Trigger = toml::from_str(
///     r#"
///     type = "transient"
///     activation_only = true
///     on_exit = { panicked = "fail_supervisor" }
///     "#,
/// )?;
/// let same = Trigger::from(RestartType::Transient).activation_only();
/// assert_eq!(table, same.on(ExitKind::Panicked, OnExit::FailSupervisor));
/// # Ok(())
/// # }
/// # #[cfg(feature = "serde")]
/// # read().unwrap();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Trigger {
    pub(super) restart: RestartType,
    pub(super) activation_only: bool,
    pub(super) exceptions: Exceptions,
}

impl Trigger {
    /// Restarts the child after every exit. The default.
    ///
    /// The same as [`RestartType::Permanent`], and as `triggerOn: any` in actor-ts.
    pub fn any() -> Self {
        RestartType::Permanent.into()
    }

    /// Restarts the child after a failure. A clean exit ends the supervisor as `Normal`.
    ///
    /// The same as `triggerOn: failure` in actor-ts, and `onFailure` in Akka. To keep the supervisor
    /// running after a clean exit, use [`RestartType::Transient`].
    pub fn failure() -> Self {
        let trigger = Self::from(RestartType::Transient);
        kinds(true).fold(trigger, |trigger, kind| trigger.on(kind, OnExit::EndSupervisor))
    }

    /// Restarts the child after a clean exit. A failure fails the supervisor.
    ///
    /// The same as [`RestartType::OnStop`], and as `triggerOn: stop` in actor-ts.
    pub fn stop() -> Self {
        RestartType::OnStop.into()
    }

    /// Restarts the child only while it isn't active yet.
    ///
    /// The exit of an active child leaves it down, regardless of the restart type. Exceptions still
    /// apply. Use it for components that handle their own failures once they are active. Such a
    /// child stays *errored* after a failure, until a call retries it.
    pub fn activation_only(mut self) -> Self {
        self.activation_only = true;
        self
    }

    /// Sets what an exit of this kind leads to, regardless of the restart type.
    ///
    /// The last call for a kind wins.
    pub fn on(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.exceptions.on_exit(kind, then);
        self
    }

    /// Sets what every failure leads to: [`on`](Self::on) for all kinds that aren't clean.
    pub fn on_failure(self, then: OnExit) -> Self {
        kinds(false).fold(self, |trigger, kind| trigger.on(kind, then))
    }

    /// Sets what an error leads to, if `matches` returns `true` for it.
    pub fn on_error<E: Error + 'static>(
        mut self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
        then: OnExit,
    ) -> Self {
        self.exceptions.on_error(matches, then);
        self
    }

    /// Restarts the child after an error for which `matches` returns `true`.
    ///
    /// Short for [`on_error`](Self::on_error) with [`OnExit::Restart`]. It takes precedence over
    /// every rule but an exception for the error that doesn't restart.
    pub fn restart_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Restart)
    }

    /// Leaves the child down after an error for which `matches` returns `true`.
    ///
    /// Short for [`on_error`](Self::on_error) with [`OnExit::Leave`]. It takes precedence over every
    /// other rule.
    pub fn stop_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Leave)
    }

    /// Returns the restart type, without the exceptions to it.
    #[must_use]
    pub const fn restart_type(&self) -> RestartType {
        self.restart
    }

    /// Whether there are exceptions to the restart type.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.exceptions != *Exceptions::EMPTY
    }

    /// Returns what an exit of this kind leads to. `active`: whether the child was active before;
    /// `by_error`: what the predicates about errors specify for it.
    pub(crate) fn after(&self, kind: ExitKind, active: bool, by_error: Option<OnExit>) -> OnExit {
        if let Some(then) = by_error.or_else(|| self.exceptions.for_kind(kind)) {
            return then;
        }
        if active && self.activation_only { OnExit::Leave } else { self.restart.after(kind) }
    }

    /// Whether a predicate may decide on this exit.
    pub(crate) fn asks_about(&self, reason: &ExitReason) -> bool {
        self.exceptions.has_any_for_errors() && reason.error().is_some()
    }

    /// Calls the predicates about the error of an exit.
    pub(crate) fn for_error(&self, reason: &ExitReason) -> Option<OnExit> {
        self.exceptions.for_error(reason)
    }

    /// Calls the predicates, and returns what this exit leads to.
    #[cfg(test)]
    pub(crate) fn after_exit(&self, reason: &ExitReason, active: bool) -> OnExit {
        self.after(reason.exit_kind(), active, self.for_error(reason))
    }

    /// Returns the trigger with these exceptions before its own.
    pub(crate) fn with(mut self, own: &Exceptions) -> Self {
        let base = std::mem::replace(&mut self.exceptions, own.clone());
        self.exceptions.extend(base);
        self
    }

    /// Whether every possible exit restarts the child.
    pub(crate) fn always_restarts(&self) -> bool {
        let by_kind = ExitKind::ALL.iter().all(|&kind| match self.exceptions.for_kind(kind) {
            Some(then) => then.restarts(),
            None => !self.activation_only && self.restart.after(kind).restarts(),
        });
        by_kind && self.exceptions.by_error().all(|(_, then)| then.restarts())
    }
}

impl From<RestartType> for Trigger {
    fn from(restart: RestartType) -> Self {
        Self { restart, ..Self::default() }
    }
}

/// Lists the kinds of exits that are clean, or those that aren't.
fn kinds(clean: bool) -> impl Iterator<Item = ExitKind> {
    ExitKind::ALL.iter().copied().filter(move |kind| kind.is_clean() == clean)
}
