//! Exceptions to a restart type: for kinds of exits, and for errors.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::exit::{ExitKind, ExitReason};
use crate::panic::Foreign;
use crate::policy::OnExit;
use crate::policy::causes::find_in_causes;

/// The exceptions of a trigger, or those that a spec adds to the trigger.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exceptions {
    /// Indexed by the discriminant of the kind.
    by_kind: [Option<OnExit>; ExitKind::ALL.len()],
    /// In the order of the calls.
    by_error: Vec<ErrorException>,
}

impl Exceptions {
    pub(crate) const EMPTY: &Self =
        &Self { by_kind: [None; ExitKind::ALL.len()], by_error: Vec::new() };

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
        self.by_error.push(ErrorException {
            error_type: std::any::type_name::<E>(),
            matches: Foreign::new(Arc::new(matches)),
            then,
        });
    }

    /// Returns the answer for this kind of exit.
    pub(in crate::policy) fn for_kind(&self, kind: ExitKind) -> Option<OnExit> {
        self.by_kind[kind as usize]
    }

    /// Lists the exceptions for errors: the name of the error type, and the answer.
    pub(in crate::policy) fn by_error(&self) -> impl Iterator<Item = (&'static str, OnExit)> {
        self.by_error.iter().map(|exception| (exception.error_type, exception.then))
    }

    /// Whether there is an exception for an error.
    pub(super) fn has_any_for_errors(&self) -> bool {
        !self.by_error.is_empty()
    }

    /// Returns the answer for the error of an exit: first one that doesn't restart, then one that does.
    pub(super) fn for_error(&self, reason: &ExitReason) -> Option<OnExit> {
        let error = reason.error()?;
        let first = |restarts: bool| {
            let mut exceptions = self.by_error.iter();
            exceptions.find(|it| it.then.restarts() == restarts && it.matches_any_cause(error))
        };
        first(false).or_else(|| first(true)).map(|exception| exception.then)
    }

    /// Adds the exceptions of `base`, below the own ones.
    pub(super) fn extend(&mut self, base: Self) {
        for (own, base) in self.by_kind.iter_mut().zip(base.by_kind) {
            *own = own.or(base);
        }
        self.by_error.extend(base.by_error);
    }
}

/// Returns whether an exception applies to an error.
type ErrorMatch = dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync;

/// A predicate about errors of one type, and the answer if it matches.
#[derive(Clone)]
struct ErrorException {
    error_type: &'static str,
    matches: Foreign<ErrorMatch>,
    then: OnExit,
}

impl ErrorException {
    fn matches_any_cause(&self, error: &(dyn Error + 'static)) -> bool {
        find_in_causes(error, |error| (self.matches)(error).then_some(())).is_some()
    }
}

/// Two exceptions are equal if they share one predicate.
impl PartialEq for ErrorException {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.matches.shared(), other.matches.shared()) && self.then == other.then
    }
}

impl fmt::Debug for ErrorException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {:?}", self.error_type, self.then)
    }
}
