//! What errors and kinds of exits change about a restart: whether there is one, and after which delay.
//!
//! # Invariants
//!
//! 1. An error is searched together with its causes, the error itself first.
//! 2. The functions of a [`RetryAfter`] are called in the order in which they were added. The first answer decides, and
//!    a panic is no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::{ExitKind, ExitReason, with_causes};
use crate::panic::{Foreign, catch_panic};
use crate::policy::OnExit;

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

/// A predicate about errors of one type, and the answer if it matches. Two are equal if they share one predicate.
#[derive(Clone, PartialEq)]
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

impl fmt::Debug for ErrorException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {:?}", self.error_type, self.then)
    }
}

/// The functions of a spec or of the defaults that return a delay for an error.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryAfter {
    functions: Vec<DelayFunction>,
}

impl RetryAfter {
    pub(crate) fn add<E: Error + 'static>(
        &mut self,
        delay: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) {
        self.functions.push(DelayFunction {
            error_type: std::any::type_name::<E>(),
            delay: Foreign::new(Arc::new(move |error| error.downcast_ref().and_then(&delay))),
        });
    }

    /// Returns these functions, and the others after them.
    pub(crate) fn and(mut self, others: &Self) -> Self {
        self.functions.extend(others.functions.iter().cloned());
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the delay that the error of this exit requests.
    pub(crate) fn delay(&self, reason: &ExitReason) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        let error = reason.error()?;
        self.functions.iter().find_map(|it| find_in_causes(error, |error| (it.delay)(error)))
    }
}

/// Returns the delay that an error requests, if any.
type RequestedDelay = dyn Fn(&(dyn Error + 'static)) -> Option<Duration> + Send + Sync;

#[derive(Clone)]
struct DelayFunction {
    error_type: &'static str,
    delay: Foreign<RequestedDelay>,
}

impl fmt::Debug for DelayFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.error_type)
    }
}

/// Calls `answer` for `error`, then for each of its causes, and returns the first answer.
///
/// A panic counts as no answer.
pub(super) fn find_in_causes<T>(
    error: &(dyn Error + 'static),
    answer: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    catch_panic(|| with_causes(error).find_map(answer)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    #[derive(Debug, thiserror::Error)]
    #[error("too many requests")]
    struct TooMany(Option<u64>);

    #[derive(Debug, thiserror::Error)]
    #[error("no prices")]
    struct NoPrices(#[source] TooMany);

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn functions() -> RetryAfter {
        let mut functions = RetryAfter::default();
        functions.add(|TooMany(after)| after.map(secs));
        functions
    }

    fn escalated(source: ExitReason) -> ExitReason {
        ExitReason::Escalated { child: Path::root("a"), source: source.into() }
    }

    #[test]
    fn the_error_and_its_causes_are_searched() {
        let wrapped = anyhow::Error::from(NoPrices(TooMany(Some(4)))).context("poll");
        let table = [
            (ExitReason::Failed(TooMany(Some(1)).into()), Some(1)),
            (ExitReason::ActivationFailed(TooMany(Some(2)).into()), Some(2)),
            (ExitReason::Failed(NoPrices(TooMany(Some(3))).into()), Some(3)),
            (ExitReason::Failed(wrapped.into()), Some(4)),
            (ExitReason::Failed(std::io::Error::other(NoPrices(TooMany(Some(5)))).into()), Some(5)),
            (escalated(escalated(ExitReason::Failed(TooMany(Some(6)).into()))), Some(6)),
            (ExitReason::Failed(TooMany(Some(0)).into()), Some(0)),
            (ExitReason::Failed(TooMany(None).into()), None),
            (ExitReason::Failed("too many requests".into()), None),
            (ExitReason::Panicked("too many requests".into()), None),
            (ExitReason::Normal, None),
        ];
        for (reason, wait) in table {
            assert_eq!(functions().delay(&reason), wait.map(secs), "{reason}");
            assert_eq!(RetryAfter::default().delay(&reason), None, "no function: {reason}");
        }
    }

    #[test]
    fn the_first_answer_counts_and_a_panic_is_no_answer() {
        let mut functions = RetryAfter::default();
        functions.add(|TooMany(after)| match after {
            Some(7) => panic!("on purpose"),
            Some(1) => Some(secs(10)),
            _ => None,
        });
        functions.add(|_: &NoPrices| Some(secs(20)));
        functions.add(|_: &TooMany| Some(secs(30)));
        for (after, wait) in [(1, 10), (2, 30), (7, 30)] {
            let reason = ExitReason::Failed(TooMany(Some(after)).into());
            assert_eq!(functions.delay(&reason), Some(secs(wait)), "{after}");
        }
        let reason = ExitReason::Failed(NoPrices(TooMany(Some(7))).into());
        assert_eq!(functions.delay(&reason), Some(secs(20)), "the functions are called in order");
    }
}
