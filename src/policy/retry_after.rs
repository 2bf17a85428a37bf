//! Waits that errors ask for, such as `Retry-After`.
//!
//! An [`AskedWaits`] finds the wait in the error behind an end. Who waits, and how the backoff goes
//! on afterwards, is known to the machine; what an error is found for is a
//! [`Trigger`](super::Trigger)'s matter, which looks for it in the same places.
//!
//! # Invariants
//!
//! 1. The first answer counts: of the questions in the order in which they were written, and of the
//!    causes of an error from the outermost.
//! 2. A question that panics has no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::causes::first_answer;
use crate::exit::ExitReason;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedWaits {
    questions: Vec<Question>,
}

impl AskedWaits {
    pub(crate) fn ask<E: Error + 'static>(
        &mut self,
        wait: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) {
        self.questions.push(Question {
            of: std::any::type_name::<E>(),
            wait: Arc::new(move |error| error.downcast_ref().and_then(&wait)),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// The wait that the error behind this end asks for, if it does.
    pub(crate) fn after(&self, reason: &ExitReason) -> Option<Duration> {
        let error = (!self.is_empty()).then(|| reason.error())??;
        self.questions.iter().find_map(|question| question.answer(error))
    }
}

/// The wait, if the error is of the type that is asked, and says so.
type Wait = dyn Fn(&(dyn Error + 'static)) -> Option<Duration> + Send + Sync;

#[derive(Clone)]
struct Question {
    /// The name of the type.
    of: &'static str,
    wait: Arc<Wait>,
}

impl Question {
    fn answer(&self, error: &(dyn Error + 'static)) -> Option<Duration> {
        first_answer(error, |error| (self.wait)(error))
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)
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

    fn waits() -> AskedWaits {
        let mut waits = AskedWaits::default();
        waits.ask(|TooMany(after)| after.map(secs));
        waits
    }

    fn escalated(source: ExitReason) -> ExitReason {
        ExitReason::Escalated { child: Path::root("a"), source: source.into() }
    }

    #[test]
    fn an_error_is_looked_for_wherever_it_may_be() {
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
            assert_eq!(waits().after(&reason), wait.map(secs), "{reason}");
            assert_eq!(AskedWaits::default().after(&reason), None, "nobody is asked: {reason}");
        }
    }

    #[test]
    fn it_is_empty_until_there_is_a_question() {
        assert!(AskedWaits::default().is_empty());
        assert!(!waits().is_empty());
    }

    #[test]
    fn the_first_answer_counts_and_a_panic_is_none() {
        let mut waits = AskedWaits::default();
        waits.ask(|TooMany(after)| match after {
            Some(7) => panic!("on purpose"),
            Some(1) => Some(secs(10)),
            _ => None,
        });
        waits.ask(|_: &NoPrices| Some(secs(20)));
        waits.ask(|_: &TooMany| Some(secs(30)));
        for (after, wait) in [(1, 10), (2, 30), (7, 30)] {
            let reason = ExitReason::Failed(TooMany(Some(after)).into());
            assert_eq!(waits.after(&reason), Some(secs(wait)), "{after}");
        }
        let reason = ExitReason::Failed(NoPrices(TooMany(Some(7))).into());
        assert_eq!(waits.after(&reason), Some(secs(20)), "the order is that of the questions");
    }
}
