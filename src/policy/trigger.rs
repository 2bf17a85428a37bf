//! Triggers: what the end of a child leads to.
//!
//! A [`Trigger`] is a [`RestartType`] with exceptions: for kinds of ends, and for errors. It answers
//! with an [`OnExit`], from how the child ended and whether it had been active. What that costs,
//! when it happens and who is concerned besides isn't known here. Nor is it asked about a child that
//! was told to stop.
//!
//! # Invariants
//!
//! 1. Of several that match, the first in this order decides: an exception for an error that
//!    doesn't restart; one that does; one for a kind of end; what makes a trigger be for the
//!    activation only; the restart type.
//! 2. A question about an error that panics is answered with no.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::RestartType;
use super::causes::first_answer;
use super::word::words;
use crate::exit::{ExitKind, ExitReason};

/// What the end of a child leads to.
///
/// Written in snake case, as in `end_supervisor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExit {
    /// It is restarted, which is charged to the restart intensity and delayed by its backoff.
    Restart,
    /// It is restarted like that, but not charged to its supervisor's restart intensity: for an end
    /// that is nobody's fault, such as a `429 Too Many Requests`, and that no number of makes a bug.
    ///
    /// It is held back by its wait alone, so one without a wait is charged all the same, as is any
    /// under a preset that charges everything; and where no restart is allowed, this one isn't
    /// either. So it is with failures before a child is active, too. The child's own limits count
    /// it, and so do its attempts.
    RestartUncharged,
    /// It isn't restarted. A child of the type [`Temporary`](RestartType::Temporary), or of a
    /// dynamic supervisor, is forgotten. Another one stays, *stopped* if its end was clean, and
    /// *errored* if it has failed, until somebody starts it or its group is restarted.
    Leave,
    /// Its supervisor stops the other children in reverse order and ends as `Normal`, as after an
    /// [`AutoShutdown`](crate::AutoShutdown).
    EndSupervisor,
    /// Its supervisor stops the other children in reverse order and fails, as `Escalated` with the
    /// reason of this end, as when it gives up. Nothing is charged. It is a failure also under the
    /// presets that let a supervisor give up cleanly.
    FailSupervisor,
}

impl OnExit {
    /// Whether the child is restarted, whatever that costs.
    pub(crate) const fn restarts(self) -> bool {
        match self {
            Self::Restart | Self::RestartUncharged => true,
            Self::Leave | Self::EndSupervisor | Self::FailSupervisor => false,
        }
    }
}

words!(
    OnExit, "answer to an end":
    Restart = "restart",
    RestartUncharged = "restart_uncharged",
    Leave = "leave",
    EndSupervisor = "end_supervisor",
    FailSupervisor = "fail_supervisor",
);

/// Which end of a child leads to what: a [`RestartType`], and exceptions to it.
///
/// This is asked when a child has ended by itself. A child that was told to stop (by hand, with its
/// group, or because its supervisor ends) isn't restarted, whatever is said here. Nor is it asked of
/// a start whose failure goes to the caller of `start_child` or `restart_child`, or is the end of
/// the first start ([`FirstStart::Fail`](crate::FirstStart::Fail)).
///
/// The first of these that matches decides, which is the order of systemd, from
/// `RestartPreventExitStatus` by `RestartForceExitStatus` to `Restart`:
///
/// 1. an exception for its error that *doesn't* restart it: [`stop_if`](Self::stop_if), or
///    [`on_error`](Self::on_error) with anything but a restart; the first that was written,
/// 2. an exception for its error that does: [`restart_if`](Self::restart_if), or
///    [`on_error`](Self::on_error) with [`OnExit::RestartUncharged`]; the first that was written,
/// 3. an exception for the kind of its end: [`on`](Self::on), [`on_failure`](Self::on_failure); the
///    last that was written,
/// 4. [`activation_only`](Self::activation_only),
/// 5. the restart type.
///
/// ```
/// use std::io;
///
/// use verger::{Context, Exit, ExitKind, OnExit, RestartType, Supervisor, Trigger, worker};
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
/// A question about an error is asked if the child returned one, or is a supervisor that gave up
/// on a child that did. It is put to the error itself and to each of its causes (see
/// [`Error::source`]) that is of the question's type. An error that was made from a text has no
/// type to ask for.
///
/// Questions are asked in the supervisor's turn, sometimes more than once, so they should be
/// quick and depend on nothing else; see [`SupervisorHandle`](crate::SupervisorHandle). One that
/// panics is answered with no: the panic is caught, as far as the program unwinds at all, and shows
/// only through its panic hook.
///
/// Two triggers are equal if they ask the
/// same questions, that is, if one was cloned from the other.
///
/// # In a file
///
/// A restart type by its word, or a table with exceptions to it. All keys may be left out; without
/// a `type` it is permanent. Questions about errors are code: they are written as the types that
/// they ask for, and can't be read.
///
/// ```
/// use verger::{ExitKind, OnExit, RestartType, Trigger};
///
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
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Trigger {
    pub(super) restart: RestartType,
    pub(super) activation_only: bool,
    pub(super) exceptions: Exceptions,
}

impl Trigger {
    /// The default, made once.
    pub(super) const DEFAULT: &Self = &Self {
        restart: RestartType::Permanent,
        activation_only: false,
        exceptions: Exceptions { by_kind: [None; ExitKind::ALL.len()], by_error: Vec::new() },
    };

    /// Any end: the child is restarted whether it failed or ended well. The default.
    ///
    /// As actor-ts's `triggerOn: any`, and what Akka's `BackoffSupervisor` first did, which was
    /// later called `onStop`. The same as [`RestartType::Permanent`].
    pub fn any() -> Self {
        RestartType::Permanent.into()
    }

    /// A failure: the child is restarted. If it ends well, that is the end of its supervisor, too,
    /// which ends as `Normal`.
    ///
    /// As actor-ts's `triggerOn: failure`, and Akka's `onFailure`; for work that is done when it is
    /// done, and should be restarted on an unexpected death. To leave the supervisor running, use
    /// [`RestartType::Transient`].
    pub fn failure() -> Self {
        let trigger = Self::from(RestartType::Transient);
        let clean = ExitKind::ALL.into_iter().filter(|kind| kind.is_clean());
        clean.fold(trigger, |trigger, kind| trigger.on(kind, OnExit::EndSupervisor))
    }

    /// A clean end: the child is restarted. If it fails, its supervisor fails with its reason.
    ///
    /// As actor-ts's `triggerOn: stop`. The same as [`RestartType::OnStop`].
    pub fn stop() -> Self {
        RestartType::OnStop.into()
    }

    /// Restarts the child only while it isn't active yet: once it was, its end is left as it is,
    /// whatever the restart type says. Exceptions still apply.
    ///
    /// For parts that are supervised until they are up, and then report what goes wrong themselves.
    /// One that fails later stays *errored*, where it is seen, until it is retried by hand.
    pub fn activation_only(mut self) -> Self {
        self.activation_only = true;
        self
    }

    /// What an end of this kind leads to, whatever the restart type says. The last word on a kind
    /// counts.
    pub fn on(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.exceptions.on_exit(kind, then);
        self
    }

    /// What an end of any kind leads to that isn't clean: [`on`](Self::on) for all of them.
    pub fn on_failure(self, then: OnExit) -> Self {
        let failures = ExitKind::ALL.into_iter().filter(|kind| !kind.is_clean());
        failures.fold(self, |trigger, kind| trigger.on(kind, then))
    }

    /// What an error leads to of which the answer is yes.
    pub fn on_error<E: Error + 'static>(
        mut self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
        then: OnExit,
    ) -> Self {
        self.exceptions.on_error(matches, then);
        self
    }

    /// Restarts the child after an error of which the answer is yes, whatever else is said, except
    /// where an exception for the error says otherwise: [`on_error`](Self::on_error) with
    /// [`OnExit::Restart`].
    pub fn restart_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Restart)
    }

    /// Leaves the child after an error of which the answer is yes, whatever else is said:
    /// [`on_error`](Self::on_error) with [`OnExit::Leave`].
    pub fn stop_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Leave)
    }

    /// The type to which this makes exceptions.
    #[must_use]
    pub const fn restart_type(&self) -> RestartType {
        self.restart
    }

    /// What this end leads to; `active`: the child was active when it came. `own` are exceptions
    /// that come before those of the trigger.
    pub(crate) fn after(&self, own: &Exceptions, reason: &ExitReason, active: bool) -> OnExit {
        let (kind, layers) = (reason.exit_kind(), [own, &self.exceptions]);
        let by_kind = || layers.iter().find_map(|layer| layer.by_kind[kind as usize]);
        let asks = layers.iter().any(|layer| !layer.by_error.is_empty());
        let by_error = if asks { by_error(layers, reason) } else { None };
        if let Some(then) = by_error.or_else(by_kind) {
            return then;
        }
        if active && self.activation_only { OnExit::Leave } else { self.restart.after(kind) }
    }

    /// The same with these exceptions before its own.
    pub(crate) fn with(mut self, own: &Exceptions) -> Self {
        let base = std::mem::replace(&mut self.exceptions, own.clone());
        for (own, base) in self.exceptions.by_kind.iter_mut().zip(base.by_kind) {
            *own = own.or(base);
        }
        self.exceptions.by_error.extend(base.by_error);
        self
    }

    /// Whether the child is restarted after every end that there can be.
    pub(crate) fn always_restarts(&self) -> bool {
        let Exceptions { by_kind, by_error } = &self.exceptions;
        let by_kind = ExitKind::ALL.into_iter().all(|kind| {
            let left = self.activation_only || !self.restart.after(kind).restarts();
            match by_kind[kind as usize] {
                Some(then) => then.restarts(),
                None => !left,
            }
        });
        by_kind && by_error.iter().all(|question| question.then.restarts())
    }
}

impl From<RestartType> for Trigger {
    fn from(restart: RestartType) -> Self {
        Self { restart, ..Self::default() }
    }
}

/// What is said of some ends of a child, before its restart type is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exceptions {
    /// By the number of the kind.
    by_kind: [Option<OnExit>; ExitKind::ALL.len()],
    /// In the order in which they were written.
    by_error: Vec<Question>,
}

impl Exceptions {
    pub(crate) fn on_exit(&mut self, kind: ExitKind, then: OnExit) {
        self.by_kind[kind as usize] = Some(then);
    }

    pub(crate) fn on_error<E: Error + 'static>(
        &mut self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
        then: OnExit,
    ) {
        let matches =
            move |error: &(dyn Error + 'static)| error.downcast_ref().is_some_and(&matches);
        self.by_error.push(Question {
            of: std::any::type_name::<E>(),
            matches: Arc::new(matches),
            then,
        });
    }
}

impl Exceptions {
    /// Those for kinds of ends.
    pub(super) fn by_kind(&self) -> impl Iterator<Item = (ExitKind, OnExit)> {
        ExitKind::ALL.into_iter().filter_map(|kind| Some((kind, self.by_kind[kind as usize]?)))
    }

    /// Those for errors: the type that is asked for, and what follows.
    pub(super) fn by_error(&self) -> impl Iterator<Item = (&'static str, OnExit)> {
        self.by_error.iter().map(|question| (question.of, question.then))
    }
}

/// Whether an error is of the type that is asked about, and the answer is yes.
type Matches = dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync;

/// A question about errors of one type, and what it leads to if the answer is yes.
#[derive(Clone)]
struct Question {
    /// The name of the type.
    of: &'static str,
    matches: Arc<Matches>,
    then: OnExit,
}

impl Question {
    fn is_answered_with_yes(&self, error: &(dyn Error + 'static)) -> bool {
        first_answer(error, |error| (self.matches)(error).then_some(())).is_some()
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.matches, &other.matches) && self.then == other.then
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {:?}", self.of, self.then)
    }
}

/// What is said of the error behind an end: first what doesn't restart the child, then what does.
fn by_error(layers: [&Exceptions; 2], reason: &ExitReason) -> Option<OnExit> {
    let error = reason.error()?;
    let first = |restarts: bool| {
        let mut questions = layers.iter().flat_map(|layer| &layer.by_error);
        questions.find(|question| {
            question.then.restarts() == restarts && question.is_answered_with_yes(error)
        })
    };
    first(false).or_else(|| first(true)).map(|question| question.then)
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::OnExit::{EndSupervisor, FailSupervisor, Leave, Restart, RestartUncharged};
    use super::*;
    use crate::path::Path;
    use crate::policy::restart::tests::ALL as TYPES;

    /// An error with a cause.
    #[derive(Debug, thiserror::Error)]
    #[error("no database")]
    struct NoDatabase {
        #[source]
        cause: io::Error,
    }

    fn io(kind: ErrorKind) -> io::Error {
        kind.into()
    }

    fn failed(kind: ErrorKind) -> ExitReason {
        ExitReason::Failed(io(kind).into())
    }

    fn escalated(source: ExitReason) -> ExitReason {
        ExitReason::Escalated { child: Path::root("a"), source: source.into() }
    }

    /// One end of each kind.
    fn ends() -> [ExitReason; 10] {
        [
            ExitReason::Normal,
            ExitReason::Shutdown,
            failed(ErrorKind::Other),
            ExitReason::Panicked("boom".into()),
            ExitReason::ActivationFailed(io(ErrorKind::Other).into()),
            ExitReason::ActivationTimedOut,
            ExitReason::Hung,
            ExitReason::Aborted,
            ExitReason::Killed,
            escalated(ExitReason::Hung),
        ]
    }

    fn after(trigger: &Trigger, reason: &ExitReason) -> OnExit {
        trigger.after(&Exceptions::default(), reason, true)
    }

    fn is(kind: ErrorKind) -> impl Fn(&io::Error) -> bool + Send + Sync + 'static {
        move |error| error.kind() == kind
    }

    const REFUSED: ErrorKind = ErrorKind::ConnectionRefused;
    const DENIED: ErrorKind = ErrorKind::PermissionDenied;

    /// What each of [`ends`] leads to.
    fn row(trigger: &Trigger) -> [OnExit; 10] {
        ends().map(|end| after(trigger, &end))
    }

    #[test]
    fn the_default_is_the_default() {
        assert_eq!(*Trigger::DEFAULT, Trigger::default());
    }

    #[test]
    fn without_exceptions_the_type_decides() {
        for restart in TYPES {
            let trigger = Trigger::from(restart);
            assert_eq!(trigger.restart_type(), restart);
            for end in ends() {
                assert_eq!(
                    after(&trigger, &end),
                    restart.after(end.exit_kind()),
                    "{restart}, {end}"
                );
            }
        }
    }

    #[test]
    fn seed0_23_the_default_is_any() {
        assert_eq!(Trigger::default(), Trigger::any());
        assert_eq!(row(&Trigger::default()), [Restart; 10]);
    }

    #[test]
    fn seed0_33_each_preset_answers_all_ends_as_its_namesake_does() {
        let clean_then =
            |clean, failed| ends().map(|end| if end.is_clean() { clean } else { failed });
        assert_eq!(row(&Trigger::any()), clean_then(Restart, Restart));
        assert_eq!(row(&Trigger::failure()), clean_then(EndSupervisor, Restart));
        assert_eq!(row(&Trigger::stop()), clean_then(Restart, FailSupervisor));
        assert_eq!(Trigger::any(), RestartType::Permanent.into());
        assert_eq!(Trigger::stop(), RestartType::OnStop.into());
    }

    #[test]
    fn seed3_33_for_the_activation_only_an_end_is_left_once_it_was_active() {
        for restart in TYPES {
            let trigger = Trigger::from(restart).activation_only();
            for end in ends() {
                let own = Exceptions::default();
                assert_eq!(trigger.after(&own, &end, true), Leave, "{restart}, {end}");
                let before = trigger.after(&own, &end, false);
                assert_eq!(before, restart.after(end.exit_kind()), "{restart}, {end}");
            }
        }
        // What is said besides is said of it, too.
        let trigger = Trigger::failure().activation_only().restart_if(is(REFUSED));
        assert_eq!(after(&trigger, &failed(REFUSED)), Restart);
        assert_eq!(after(&trigger, &failed(DENIED)), Leave);
        assert_eq!(after(&trigger, &ExitReason::Normal), EndSupervisor);
    }

    #[test]
    fn a_kind_is_an_exception_to_the_type_and_its_last_word_counts() {
        let trigger = Trigger::from(RestartType::Transient)
            .on(ExitKind::Hung, Leave)
            .on(ExitKind::Panicked, FailSupervisor)
            .on(ExitKind::Hung, EndSupervisor);
        let [normal, shutdown, failed, panicked, refused, late, hung, ..] = row(&trigger);

        assert_eq!(
            [normal, shutdown, failed, refused, late],
            [Leave, Leave, Restart, Restart, Restart]
        );
        assert_eq!([panicked, hung], [FailSupervisor, EndSupervisor]);

        let kept = Trigger::from(RestartType::Transient).on_failure(Leave);
        assert_eq!(row(&kept), [Leave; 10]);
        assert_eq!(
            row(&Trigger::any().on_failure(EndSupervisor))[..3],
            [Restart, Restart, EndSupervisor]
        );
    }

    #[test]
    fn systemd_prevents_before_it_forces_before_it_looks_at_the_rest() {
        let yes = |_: &io::Error| true;
        // The trigger, and what an error leads to.
        let table = [
            (Trigger::from(RestartType::Temporary), Leave),
            (
                Trigger::from(RestartType::Temporary).on(ExitKind::Failed, EndSupervisor),
                EndSupervisor,
            ),
            (
                Trigger::from(RestartType::Temporary)
                    .on(ExitKind::Failed, EndSupervisor)
                    .restart_if(yes),
                Restart,
            ),
            (Trigger::any().restart_if(yes).stop_if(yes), Leave),
            (Trigger::any().stop_if(yes).restart_if(yes), Leave),
            (Trigger::any().restart_if(yes).on_error(yes, FailSupervisor), FailSupervisor),
            // Among those that do not restart, the first.
            (Trigger::any().stop_if(yes).on_error(yes, FailSupervisor), Leave),
            (Trigger::any().on_error(yes, FailSupervisor).stop_if(yes), FailSupervisor),
            (Trigger::any().stop_if(is(DENIED)).on_error(yes, EndSupervisor), EndSupervisor),
            (Trigger::any().stop_if(is(DENIED)), Restart),
            // A restart is one, whatever it costs: among those, too, the first.
            (Trigger::any().on_error(yes, RestartUncharged), RestartUncharged),
            (Trigger::any().on_error(yes, RestartUncharged).stop_if(yes), Leave),
            (Trigger::any().on_error(yes, RestartUncharged).restart_if(yes), RestartUncharged),
            (Trigger::any().restart_if(yes).on_error(yes, RestartUncharged), Restart),
        ];
        for (number, (trigger, then)) in table.into_iter().enumerate() {
            assert_eq!(after(&trigger, &failed(REFUSED)), then, "{number}: {trigger:?}");
        }
    }

    #[test]
    fn an_error_is_looked_for_wherever_it_may_be() {
        let trigger = Trigger::any().stop_if(is(REFUSED));
        let deep = || NoDatabase { cause: io(REFUSED) };
        let wrapped = || anyhow::Error::from(deep()).context("start");
        let found = [
            failed(REFUSED),
            ExitReason::ActivationFailed(io(REFUSED).into()),
            ExitReason::Failed(deep().into()),
            ExitReason::Failed(wrapped().into()),
            escalated(failed(REFUSED)),
            escalated(escalated(ExitReason::ActivationFailed(deep().into()))),
        ];
        for reason in found {
            assert_eq!(after(&trigger, &reason), Leave, "{reason}");
        }
        let not_found = [
            failed(DENIED),
            ExitReason::Failed("connection refused".into()),
            ExitReason::Panicked("connection refused".into()),
            escalated(ExitReason::Aborted),
            ExitReason::Normal,
        ];
        for reason in not_found {
            assert_eq!(after(&trigger, &reason), Restart, "{reason}");
        }
        // Each error of the type is asked about, not only the first.
        let outer = io::Error::other(deep());
        assert_eq!(
            after(&Trigger::any().stop_if(is(REFUSED)), &ExitReason::Failed(outer.into())),
            Leave
        );
    }

    #[test]
    fn a_question_that_panics_is_answered_with_no() {
        let trigger = Trigger::from(RestartType::Transient)
            .stop_if(|error: &io::Error| match error.kind() {
                REFUSED => panic!("on purpose"),
                kind => kind == DENIED,
            })
            .on_error(is(REFUSED), EndSupervisor);

        assert_eq!(after(&trigger, &failed(REFUSED)), EndSupervisor, "the next one is asked");
        assert_eq!(after(&trigger, &failed(DENIED)), Leave);
    }

    /// What is said of the child itself, and what of children in general, in all combinations.
    #[test]
    fn a_childs_own_exceptions_come_first_within_each_group() {
        let mut own = Exceptions::default();
        own.on_exit(ExitKind::Panicked, Leave);
        own.on_error(is(REFUSED), Restart);
        own.on_error(is(ErrorKind::TimedOut), Leave);
        let base = Trigger::from(RestartType::Transient)
            .on(ExitKind::Panicked, EndSupervisor)
            .on(ExitKind::Hung, EndSupervisor)
            .on_error(is(DENIED), FailSupervisor)
            .on_error(is(ErrorKind::TimedOut), FailSupervisor);
        let prevented = base.clone().stop_if(is(REFUSED));

        let table = [
            (&base, ExitReason::Panicked("boom".into()), Leave),
            (&base, ExitReason::Hung, EndSupervisor),
            (&base, failed(REFUSED), Restart),
            (&base, failed(DENIED), FailSupervisor),
            (&base, failed(ErrorKind::TimedOut), Leave),
            (&base, ExitReason::Normal, Leave),
            // Even so what prevents a restart comes before what forces one.
            (&prevented, failed(REFUSED), Leave),
        ];
        for (trigger, reason, then) in table {
            assert_eq!(trigger.after(&own, &reason, true), then, "{reason}");
            let whole = trigger.clone().with(&own);
            assert_eq!(after(&whole, &reason), then, "as one: {reason}");
        }
    }

    #[test]
    fn whether_there_is_an_end_that_is_not_restarted_is_known() {
        let yes = |_: &io::Error| true;
        let always = [
            Trigger::any(),
            Trigger::any().restart_if(yes),
            Trigger::stop().on_failure(Restart),
            Trigger::any().on(ExitKind::Hung, Restart),
            Trigger::stop().on_failure(RestartUncharged).on_error(yes, RestartUncharged),
        ];
        for trigger in always {
            assert!(trigger.always_restarts(), "{trigger:?}");
        }
        let not_always = [
            Trigger::stop(),
            Trigger::failure(),
            Trigger::any().stop_if(yes),
            Trigger::any().on(ExitKind::Hung, FailSupervisor),
            Trigger::any().activation_only(),
            RestartType::Temporary.into(),
        ];
        for trigger in not_always {
            assert!(!trigger.always_restarts(), "{trigger:?}");
        }
    }

    #[test]
    fn triggers_are_equal_if_they_ask_the_same() {
        let trigger = Trigger::any().stop_if(is(REFUSED));

        assert_eq!(trigger, trigger.clone());
        assert_ne!(trigger, Trigger::any());
        assert_ne!(trigger, Trigger::any().stop_if(is(REFUSED)), "that can't be known");
        assert_ne!(Trigger::any(), Trigger::any().activation_only());
        assert_ne!(Trigger::any(), Trigger::any().on(ExitKind::Hung, Leave));
    }

    #[test]
    fn a_trigger_is_shown_as_a_whole() {
        let trigger = Trigger::failure().restart_if(is(REFUSED)).on(ExitKind::Hung, FailSupervisor);
        let json = serde_json::json!({
            "type": "transient",
            "on_exit": {
                "normal": "end_supervisor",
                "shutdown": "end_supervisor",
                "hung": "fail_supervisor",
            },
            "on_error": [{ "error": std::any::type_name::<io::Error>(), "then": "restart" }],
        });
        assert_eq!(serde_json::to_value(&trigger).unwrap(), json);
        assert!(format!("{trigger:?}").contains("io::error::Error => Restart"), "{trigger:?}");

        for (then, word) in [
            (Restart, "restart"),
            (RestartUncharged, "restart_uncharged"),
            (Leave, "leave"),
            (EndSupervisor, "end_supervisor"),
            (FailSupervisor, "fail_supervisor"),
        ] {
            assert_eq!(then.to_string(), word);
            assert_eq!(serde_json::to_value(then).unwrap(), word);
            assert_eq!(serde_json::from_value::<OnExit>(word.into()).unwrap(), then);
        }
    }
}
