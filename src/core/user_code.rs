//! The code of the user that a step calls.
//!
//! A step asks for four things that its arguments don't contain: what a predicate says of an error, the delay that
//! an error requests, the next delay of a backoff, and the jitter of a pause. It gets them from a [`UserCode`].
//! [`UserCalls`] calls the functions of the options; another implementation may record the answers, or give those
//! of a recording.
//!
//! # Invariants
//!
//! 1. A step depends on the machine, its event, its instant and these answers alone.
//! 2. The machine calls nothing of the user's itself.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::Key;
use crate::exit::ExitReason;
use crate::policy::{
    Backoff, CurvePosition, OnExit, RandomFactory, RandomSource, RetryAfter, RunningIterator,
    Trigger,
};

/// See the [module](self). Each method gets the child that its answer is for.
pub(crate) trait UserCode {
    /// Returns what the exceptions of a trigger specify for the error of this exit.
    fn on_error(&mut self, key: Key, trigger: &Trigger, reason: &ExitReason) -> Option<OnExit>;

    /// Returns the delay that the error of this exit requests.
    fn retry_after(
        &mut self,
        key: Key,
        functions: &RetryAfter,
        reason: &ExitReason,
    ) -> Option<Duration>;

    /// Returns the delay at this position of the backoff, with its jitter; `None` after the last one.
    fn delay(&mut self, key: Key, backoff: &Backoff, position: CurvePosition) -> Option<Duration>;

    /// Returns a delay that isn't on the backoff's curve with the backoff's jitter.
    fn spread(&mut self, key: Key, backoff: &Backoff, wait: Duration) -> Duration;
}

/// The functions of the options, and the random numbers of one supervisor.
pub(crate) struct UserCalls {
    random: RandomSource,
    /// The iterators of backoffs that are iterators.
    iterators: FxHashMap<Key, RunningIterator>,
}

impl UserCalls {
    /// `seed` starts the generator, unless there is a custom one.
    pub(crate) fn new(random: Option<&RandomFactory>, seed: u64) -> Self {
        Self { random: RandomSource::new(random, seed), iterators: FxHashMap::default() }
    }

    /// Drops what is kept for a child.
    pub(crate) fn forget(&mut self, key: Key) {
        self.iterators.remove(&key);
    }
}

impl UserCode for UserCalls {
    fn on_error(&mut self, _key: Key, trigger: &Trigger, reason: &ExitReason) -> Option<OnExit> {
        trigger.for_error(reason)
    }

    fn retry_after(
        &mut self,
        _key: Key,
        functions: &RetryAfter,
        reason: &ExitReason,
    ) -> Option<Duration> {
        functions.delay(reason)
    }

    fn delay(&mut self, key: Key, backoff: &Backoff, position: CurvePosition) -> Option<Duration> {
        let mut iterator = self.iterators.remove(&key).unwrap_or_default();
        let delay = backoff.wait_at(position, &mut iterator, &mut self.random);
        if !iterator.is_none() {
            self.iterators.insert(key, iterator);
        }
        delay
    }

    fn spread(&mut self, _key: Key, backoff: &Backoff, wait: Duration) -> Duration {
        backoff.spread(wait, &mut self.random)
    }
}

/// No user's code, for events that must not call any.
#[cfg(test)]
pub(super) struct NoUserCode;

#[cfg(test)]
impl UserCode for NoUserCode {
    fn on_error(&mut self, _: Key, _: &Trigger, reason: &ExitReason) -> Option<OnExit> {
        panic!("asked what follows {reason}")
    }

    fn retry_after(&mut self, _: Key, _: &RetryAfter, reason: &ExitReason) -> Option<Duration> {
        panic!("asked for the delay after {reason}")
    }

    fn delay(&mut self, _: Key, backoff: &Backoff, _: CurvePosition) -> Option<Duration> {
        panic!("asked for a delay of {backoff:?}")
    }

    fn spread(&mut self, _: Key, _: &Backoff, wait: Duration) -> Duration {
        panic!("asked for the jitter of {wait:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_iterator_is_kept_for_each_child_until_the_child_is_forgotten() {
        let backoff = Backoff::iter(|| (1..=3).map(Duration::from_millis));
        let mut calls = UserCalls::new(None, 7);
        let keys = [Key::of_number(0), Key::of_number(1)];
        let mut position = CurvePosition::default();
        for millis in 1..=3 {
            for key in keys {
                assert_eq!(calls.delay(key, &backoff, position), Some(ms(millis)));
            }
            position.advance(ms(millis));
        }
        assert_eq!(calls.delay(keys[0], &backoff, position), None);
        assert_eq!(calls.iterators.len(), 1, "an iterator that has ended is dropped");
        calls.forget(keys[1]);
        assert_eq!(calls.iterators.len(), 0);
        assert_eq!(calls.delay(keys[0], &backoff, CurvePosition::default()), Some(ms(1)));
    }
}
