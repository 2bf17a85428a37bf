//! Triggers: what the exit of a child leads to.
//!
//! A [`RestartType`] is a table from kinds of exits to answers, [`OnExit`]. A [`Trigger`] is a restart type with exceptions
//! for kinds of exits and for errors. It answers from the reason of the exit and whether the child was active. It isn't
//! evaluated for a child that was cancelled.
//!
//! # Invariants
//!
//! 1. Of several rules that match, the first in this order decides: an exception for an error that
//!    doesn't restart, an exception for an error that does, an exception for a kind of exit,
//!    `activation_only`, the restart type.
//! 2. A predicate about an error that panics doesn't match.
//! 3. Only [`Temporary`](RestartType::Temporary) children are removed when they have ended, unless a message
//!    may start them again.

mod exceptions;
#[cfg(test)]
mod tests;

use std::error::Error;

pub(crate) use self::exceptions::{Exceptions, RetryAfter};
use crate::exit::{ExitKind, ExitReason};
use crate::string_enum::string_enum;

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
/// 1. an exception for the error that *doesn't* restart the child: [`leave_down_if`](Self::leave_down_if), or
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
///     .leave_down_if(|error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied)
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
    pub fn leave_down_if<E: Error + 'static>(
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

/// Which exits of a child are followed by a restart.
///
/// `Permanent`, `Transient` and `Temporary` are OTP's. `OnStop` is for a child that runs again and
/// again as long as it succeeds. The others are systemd's. A child that was cancelled is never
/// restarted, regardless of its type.
///
/// | exit | [`ExitReason`](crate::ExitReason) |
/// | --- | --- |
/// | clean | `Normal`, `Shutdown` |
/// | error | `Failed`, `ActivationFailed`, `Escalated` |
/// | violent | `Panicked`, `Aborted`, `Killed` |
/// | timeout | `ActivationTimedOut`, `TimedOut` |
/// | watchdog | `Hung`, `Unhealthy` |
///
/// | | clean | error | violent | timeout | watchdog | systemd |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | `Permanent` | restart | restart | restart | restart | restart | `always` |
/// | `Transient` | – | restart | restart | restart | restart | `on-failure` |
/// | `Temporary` | – | – | – | – | – | `no` |
/// | `OnStop` | restart | fail | fail | fail | fail | |
/// | `OnSuccess` | restart | – | – | – | – | `on-success` |
/// | `OnAbnormal` | – | – | restart | restart | restart | `on-abnormal` |
/// | `OnAbort` | – | – | restart | – | – | `on-abort` |
/// | `OnWatchdog` | – | – | – | – | restart | `on-watchdog` |
///
/// *Restart* is charged and delayed like a restart after a failure, even after a clean exit. *Fail*
/// ends the supervisor: see [`OnExit::FailSupervisor`]. After every other exit the child is down, and
/// a call can start it: *stopped* after a clean exit, *errored* after a failure. Only a temporary
/// child is removed. systemd would keep it; to keep a child that is never restarted, use
/// `Trigger::from(RestartType::Transient).on_failure(OnExit::Leave)`.
///
/// Displayed and written in snake case, as in `on_stop`. In a file, `always` is also `permanent`,
/// `on_failure` is `transient`, and `never` and `no` are `temporary`.
///
/// ```
/// use verger::RestartType;
///
/// assert_eq!("on_failure".parse(), Ok(RestartType::Transient));
/// assert_eq!(RestartType::Transient.to_string(), "transient");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RestartType {
    /// Restarts the child after every exit, even a clean one. The default, as in OTP.
    #[default]
    Permanent,
    /// Restarts the child after a failure. After a clean exit it is stopped, and its spec is kept.
    Transient,
    /// Never restarts the child. Its spec is removed when it exits or its group restarts, unless
    /// [a message may start it again](crate::ChildSpec::start_on_message).
    Temporary,
    /// Restarts the child after a clean exit. A failure fails the supervisor, and isn't charged.
    OnStop,
    /// Restarts the child after a clean exit. After a failure it stays errored.
    OnSuccess,
    /// Restarts the child after every failure except a returned error.
    OnAbnormal,
    /// Restarts the child after a panic or an abort.
    OnAbort,
    /// Restarts the child when it hung (it missed its heartbeats) or was unhealthy.
    OnWatchdog,
}

impl RestartType {
    /// Returns what follows an exit of this kind.
    pub(crate) const fn after(self, kind: ExitKind) -> OnExit {
        use OnExit::{FailSupervisor, Leave, Restart};
        // Clean, error, violent, timeout, watchdog.
        let row = match self {
            Self::Permanent => [Restart, Restart, Restart, Restart, Restart],
            Self::Transient => [Leave, Restart, Restart, Restart, Restart],
            Self::Temporary => [Leave, Leave, Leave, Leave, Leave],
            Self::OnStop => {
                [Restart, FailSupervisor, FailSupervisor, FailSupervisor, FailSupervisor]
            }
            Self::OnSuccess => [Restart, Leave, Leave, Leave, Leave],
            Self::OnAbnormal => [Leave, Leave, Restart, Restart, Restart],
            Self::OnAbort => [Leave, Leave, Restart, Leave, Leave],
            Self::OnWatchdog => [Leave, Leave, Leave, Leave, Restart],
        };
        match kind {
            ExitKind::Normal | ExitKind::Shutdown => row[0],
            ExitKind::Failed
            | ExitKind::ActivationFailed
            | ExitKind::Escalated
            | ExitKind::Exit => row[1],
            ExitKind::Panicked | ExitKind::Aborted | ExitKind::Killed => row[2],
            ExitKind::ActivationTimedOut | ExitKind::TimedOut => row[3],
            ExitKind::Hung | ExitKind::Unhealthy => row[4],
        }
    }
}

string_enum!(
    RestartType, "restart type":
    Permanent = "permanent" | "always",
    Transient = "transient" | "on_failure",
    Temporary = "temporary" | "never" | "no",
    OnStop = "on_stop",
    OnSuccess = "on_success",
    OnAbnormal = "on_abnormal",
    OnAbort = "on_abort",
    OnWatchdog = "on_watchdog",
);

/// What a supervisor does when a child exits by itself.
///
/// Displayed and written in snake case, as in `end_supervisor`.
///
/// The example of [`Trigger`](crate::policy::Trigger) sets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExit {
    /// Restarts the child, after its backoff and within the restart limits.
    Restart,
    /// Restarts the child without charging the built-in restart limit or that of its supervisor.
    ///
    /// Use it for an exit that isn't a bug however often it happens, such as a response
    /// `429 Too Many Requests`. Limits that are written for the child still count the restart.
    ///
    /// Only the delay keeps such a restart from becoming a busy loop. The restart is therefore
    /// charged if its delay is zero, or if
    /// [`count_failed_starts`](crate::SupervisorBuilder::count_failed_starts) is set. A limit of zero
    /// restarts doesn't allow it. The same holds for errors before a child is active.
    RestartUncharged,
    /// Leaves the child down.
    ///
    /// A [`Temporary`](crate::RestartType::Temporary) child, or a child of a dynamic supervisor, is
    /// removed, unless [a message may start it again](crate::ChildSpec::start_on_message). Every other child is kept: *stopped* after a clean exit and *errored* after a
    /// failure, until a call starts it or its group restarts.
    Leave,
    /// Ends the supervisor as `Normal`, after it has stopped the other children in reverse order.
    ///
    /// This is what an [`AutoShutdown`](crate::policy::AutoShutdown) does.
    EndSupervisor,
    /// Fails the supervisor, after it has stopped the other children in reverse order.
    ///
    /// The supervisor ends as `Escalated` with the reason of the exit. No restart is charged. It is
    /// a failure even under presets in which giving up is a clean exit.
    FailSupervisor,
}

impl OnExit {
    /// Whether the child is restarted, charged or not.
    pub(crate) const fn restarts(self) -> bool {
        matches!(self, Self::Restart | Self::RestartUncharged)
    }
}

string_enum!(
    OnExit, "answer to an exit":
    Restart = "restart",
    RestartUncharged = "restart_uncharged",
    Leave = "leave",
    EndSupervisor = "end_supervisor",
    FailSupervisor = "fail_supervisor",
);
