//! What follows when a limit is hit: restarts used up, or a child that can't be stopped.
//!
//! The limits themselves are elsewhere: how many restarts, in the supervisor's restart intensity;
//! how long a stop may take, in a child's [`Shutdown`](crate::Shutdown).

use std::fmt;

use super::word::words;

use serde::Serialize;

/// What a supervisor does with a failure that its restart intensity no longer allows to restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnExhausted {
    /// Stops all children in reverse order and fails, so that its own supervisor decides.
    ///
    /// The default. At the root it ends the program's run with an error.
    #[default]
    Escalate,
    /// Stops what the strategy would have restarted, and leaves it down until `retry`. The other
    /// children run on, and the supervisor doesn't end.
    Park,
}

impl fmt::Display for OnExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Escalate => "escalate",
            Self::Park => "park",
        })
    }
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
    use std::fmt::Display;

    use super::*;

    #[test]
    fn unless_told_otherwise_trouble_goes_up_and_a_leak_is_a_failure() {
        assert_eq!(OnExhausted::default(), OnExhausted::Escalate);
        assert_eq!(OnLeak::default(), OnLeak::Restart);
    }

    #[test]
    fn choices_are_shown_and_serialised_as_the_same_word() {
        fn both<T: Display + Serialize>(choice: T, word: &str) {
            assert_eq!(choice.to_string(), word);
            assert_eq!(serde_json::to_value(choice).unwrap(), word);
        }

        both(OnExhausted::Escalate, "escalate");
        both(OnExhausted::Park, "park");
    }
}
