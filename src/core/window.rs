//! The window of a limit, made for the first restart that counts against it.
//!
//! Most supervisors, and most children, never restart anybody: nothing is what they keep.

use std::time::Instant;

use crate::policy::{Intensity, RestartWindow};

/// See the [module](self). It is always asked about the same intensity, or cleared in between.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Window(Option<Box<RestartWindow>>);

impl Window {
    /// Whether a restart is within this intensity at `now`; any is without one. Nothing is recorded.
    #[inline]
    #[must_use]
    pub(crate) fn admits(&self, intensity: Option<Intensity>, now: Instant) -> bool {
        match &self.0 {
            Some(window) => window.admits(now),
            None => intensity.is_none_or(|it| RestartWindow::new(it).admits(now)),
        }
    }

    /// Records a restart that is granted at `now`.
    #[inline]
    pub(crate) fn record(&mut self, intensity: Option<Intensity>, now: Instant) {
        if let Some(window) = &mut self.0 {
            window.record(now);
        } else if let Some(intensity) = intensity {
            self.0.insert(Box::new(RestartWindow::new(intensity))).record(now);
        }
    }

    /// Whether what was counted was counted for another intensity than this, or than none.
    pub(crate) fn is_of_another(&self, intensity: Option<Intensity>) -> bool {
        let window = self.0.as_ref();
        window.is_some_and(|window| !intensity.is_some_and(|it| window.counts(it)))
    }

    /// How many of the restarts that may be are used up at `now`.
    pub(crate) fn count(&self, now: Instant) -> usize {
        self.0.as_ref().map_or(0, |window| window.count(now))
    }

    #[cfg(test)]
    pub(super) fn made(&self) -> Option<&RestartWindow> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_grants_what_one_does_that_was_there_from_the_beginning() {
        let t0 = Instant::now();
        for intensity in [
            Intensity::sliding(0, SECOND),
            Intensity::sliding(1, SECOND),
            Intensity::sliding(2, Duration::MAX),
            Intensity::tumbling(1, SECOND),
            Intensity::decaying(0.5, SECOND),
            Intensity::decaying(1.0, SECOND),
            Intensity::decaying(2.5, SECOND),
        ] {
            let (mut late, mut early) = (Window::default(), RestartWindow::new(intensity));
            for half_seconds in [0, 0, 1, 1, 4, 5] {
                let now = t0 + SECOND / 2 * half_seconds;
                let admits = late.admits(Some(intensity), now);
                assert_eq!(admits, early.admit(now), "{intensity} after {half_seconds}");
                if admits {
                    late.record(Some(intensity), now);
                }
                assert_eq!(late.count(now), early.count(now), "{intensity} after {half_seconds}");
            }
        }
    }

    #[test]
    fn kin_29_without_a_limit_all_are_granted_and_none_is_recorded() {
        let (mut window, t0) = (Window::default(), Instant::now());
        for _ in 0..1_000 {
            assert!(window.admits(None, t0));
            window.record(None, t0);
        }
        assert_eq!(window.count(t0), 0);
        assert!(window.made().is_none());
    }
}
