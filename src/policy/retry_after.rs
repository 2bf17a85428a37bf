//! Delays that errors request, such as `Retry-After`.
//!
//! A [`RetryAfter`] finds the delay in the error of an exit. It searches the same errors as a
//! [`Trigger`](super::Trigger).
//!
//! # Invariants
//!
//! 1. The functions are called in the order in which they were added, each for the error itself and
//!    then for its causes. The first answer counts.
//! 2. A panic of a function counts as no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::causes::find_in_causes;
use crate::exit::ExitReason;
use crate::panic::Foreign;

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
