//! What follows when a limit is hit: restarts used up, or a child that can't be stopped.
//!
//! How many restarts are too many is in an [`Intensity`], for a supervisor or a child, and in the
//! further [`Limits`] of a child; how long a stop may take, in a child's
//! [`Shutdown`](crate::Shutdown).

use std::fmt;
use std::time::Duration;

use super::word::words;
use humantime_serde::re::humantime::format_duration;

use super::Intensity;

/// What follows when a child has failed more often than its supervisor, or the child's own limits,
/// allow.
///
/// What is not [`Escalate`](Self::Escalate) first stops what the strategy would have restarted.
/// Shown as one word, with its value: `escalate`, `park`, `stop_child`, `pause 15s`, `exit 3`. In a
/// file, what has a value is a table of one key: `"park"`, `{ pause = "15s" }`, `{ exit = 3 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExhausted {
    /// Stops all children in reverse order and fails, so that its own supervisor decides.
    ///
    /// The default. At the root it ends the program's run with an error.
    #[default]
    Escalate,
    /// Leaves the child [`Errored`](crate::Lifecycle::Errored), and the rest of the range stopped,
    /// until `retry`. The other children run on, and the supervisor doesn't end.
    Park,
    /// Leaves the child [`Stopped`](crate::Lifecycle::Stopped), *given up*, and the rest of the
    /// range as well. For whoever looks at the tree it is not in trouble, but out of use.
    ///
    /// [`retry`](crate::SupervisorHandle::retry) starts it again, as for [`Park`](Self::Park).
    StopChild,
    /// Starts the range again when this time is over, as if nothing had been: the limit that was
    /// hit counts from none. The way of suture.
    ///
    /// If it was the supervisor's intensity, other children that fail meanwhile also wait for the
    /// end of the pause, and are not counted. Who runs, runs on. If it was a limit of the child's
    /// own, only the child and its range pause.
    ///
    /// The wait is visible like a backoff: the child is
    /// [`Restarting`](crate::Lifecycle::Restarting), with its next attempt. It counts from the
    /// failure, and the [jitter](crate::Jitter) of the child's backoff makes it longer. More than
    /// zero.
    Pause(Duration),
    /// Ends the program with this exit code: the supervisor stops its children in order and ends,
    /// and so does each supervisor above it, whatever its own policies are.
    ///
    /// [`run_to_exit_code`](crate::Supervisor::run_to_exit_code) returns the code;
    /// [`run`](crate::Supervisor::run) is `Ok` if it is 0, and otherwise
    /// [`RunError::Exited`](crate::RunError::Exited). How the child had ended makes no difference.
    Exit(u8),
}

impl fmt::Display for OnExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escalate => f.pad("escalate"),
            Self::Park => f.pad("park"),
            Self::StopChild => f.pad("stop_child"),
            Self::Pause(length) => f.pad(&format!("pause {}", format_duration(*length))),
            Self::Exit(code) => f.pad(&format!("exit {code}")),
        }
    }
}

/// The limits of one child, beside those of its supervisor. All that are set have to pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) intensity: Option<Intensity>,
    /// Restarts since it was last healthy.
    pub(crate) consecutive: Option<u32>,
    /// From its first failure since then to its last one that is followed by a restart.
    pub(crate) failing_for: Option<Duration>,
}

impl Limits {
    /// These, and for what they leave open, those.
    pub(crate) fn or(self, beneath: Self) -> Self {
        Self {
            intensity: self.intensity.or(beneath.intensity),
            consecutive: self.consecutive.or(beneath.consecutive),
            failing_for: self.failing_for.or(beneath.failing_for),
        }
    }
}

impl Limits {
    fn is_none(&self) -> bool {
        self.intensity.is_none() && self.consecutive.is_none() && self.failing_for.is_none()
    }

    /// The limits that go by failures in a row, as they were written.
    pub(crate) fn in_a_row(&self) -> impl Iterator<Item = String> {
        let consecutive = self.consecutive.as_ref().map(consecutive_text);
        consecutive.into_iter().chain(self.failing_for.as_ref().map(failing_for_text))
    }
}

fn consecutive_text(max: &u32) -> String {
    format!("consecutive_restarts({max})")
}

fn failing_for_text(max: &Duration) -> String {
    format!("failing_for({})", format_duration(*max))
}

/// Limits as they are written down, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrittenLimits {
    limits: Limits,
    /// What they stand above: what a type says of its children, for example.
    beneath: Limits,
    pub(crate) twice: Option<SetTwice>,
}

impl WrittenLimits {
    pub(crate) fn intensity(&mut self, intensity: Intensity) {
        set(&mut self.limits.intensity, intensity, &mut self.twice, Intensity::to_string);
    }

    pub(crate) fn consecutive(&mut self, max: u32) {
        set(&mut self.limits.consecutive, max, &mut self.twice, consecutive_text);
    }

    pub(crate) fn failing_for(&mut self, max: Duration) {
        set(&mut self.limits.failing_for, max, &mut self.twice, failing_for_text);
    }

    /// Whether nothing is limited.
    pub(crate) fn is_none(&self) -> bool {
        self.limits.is_none() && self.beneath.is_none()
    }

    /// None so far.
    pub(crate) const fn none() -> Self {
        const NONE: Limits = Limits { intensity: None, consecutive: None, failing_for: None };
        Self { limits: NONE, beneath: NONE, twice: None }
    }

    /// Writes down what another has written.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.twice.is_none() {
            self.twice.clone_from(&other.twice);
        }
        let Limits { intensity, consecutive, failing_for } = other.get();
        intensity.into_iter().for_each(|it| self.intensity(it));
        consecutive.into_iter().for_each(|max| self.consecutive(max));
        failing_for.into_iter().for_each(|max| self.failing_for(max));
    }

    /// What is written from now on stands above what was written so far.
    pub(crate) fn layer(&mut self) {
        self.beneath = std::mem::take(&mut self.limits).or(self.beneath);
    }

    pub(crate) fn get(&self) -> Limits {
        self.limits.or(self.beneath)
    }
}

/// Two values for one limit, neither of which stands above the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetTwice {
    /// As they were written.
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Sets a limit, and notes if it was set already. The first such mistake is kept.
pub(crate) fn set<T>(
    slot: &mut Option<T>,
    value: T,
    twice: &mut Option<SetTwice>,
    text: impl Fn(&T) -> String,
) {
    if let Some(first) = &*slot {
        twice.get_or_insert_with(|| SetTwice { first: text(first), second: text(&value) });
    }
    *slot = Some(value);
}

/// What a supervisor does with a child that is *leaked*: aborted, but still running.
///
/// A task can be aborted only where it awaits; code that blocks its thread runs on. A leaked
/// incarnation is always reported. OTP has no such case, because it can kill any process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLeak {
    /// Starts the next incarnation like after any failure. The old one may still be at work beside
    /// it, so this suits children that own nothing exclusively. The default.
    #[default]
    Restart,
    /// Leaves the child down until `retry`, for a child that must never run twice.
    Park,
}

words!(
    OnLeak, "answer to a leak":
    Restart = "restart",
    Park = "park",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unless_told_otherwise_trouble_goes_up_and_a_leak_is_a_failure() {
        assert_eq!(OnExhausted::default(), OnExhausted::Escalate);
        assert_eq!(OnLeak::default(), OnLeak::Restart);
    }

    #[test]
    fn what_follows_is_shown_as_a_word_with_its_value() {
        let table = [
            (OnExhausted::Escalate, "escalate"),
            (OnExhausted::Park, "park"),
            (OnExhausted::StopChild, "stop_child"),
            (OnExhausted::Pause(Duration::from_secs(15)), "pause 15s"),
            (OnExhausted::Exit(3), "exit 3"),
        ];
        for (choice, word) in table {
            assert_eq!(choice.to_string(), word);
        }
    }

    #[test]
    fn limits_of_failures_in_a_row_are_shown_as_they_are_written() {
        let shown = |limits: Limits| limits.in_a_row().collect::<Vec<_>>().join(", ");
        let intensity = Some(Intensity::sliding(1, Duration::from_secs(1)));
        let limits = Limits { intensity, ..Limits::default() };
        assert_eq!(shown(limits), "");
        let limits = Limits { consecutive: Some(3), ..limits };
        assert_eq!(shown(limits), "consecutive_restarts(3)");
        let limits = Limits { failing_for: Some(Duration::from_secs(90)), ..limits };
        assert_eq!(shown(limits), "consecutive_restarts(3), failing_for(1m 30s)");
    }

    #[test]
    fn a_limit_that_is_written_twice_is_noted_unless_it_stands_above_another() {
        let second = Duration::from_secs(1);
        let mut limits = WrittenLimits::default();
        limits.consecutive(3);
        limits.failing_for(second);
        limits.layer();
        limits.consecutive(4);
        limits.intensity(Intensity::sliding(1, second));
        assert_eq!(limits.twice, None);
        let expected = Limits {
            intensity: Some(Intensity::sliding(1, second)),
            consecutive: Some(4),
            failing_for: Some(second),
        };
        assert_eq!(limits.get(), expected);

        limits.intensity(Intensity::tumbling(2, second));
        limits.consecutive(5);
        let (first, second) = ("restarts(1, 1s)".to_owned(), "tumbling(2, 1s)".to_owned());
        assert_eq!(limits.twice, Some(SetTwice { first, second }), "the first mistake");
    }
}
