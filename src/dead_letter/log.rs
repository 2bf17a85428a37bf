//! The log lines of dead letters.

use super::{DeadLetter, Undelivered};
use crate::policy::LetterLine;
use crate::subscriber::{debug, warn};

/// Logs a letter, as its throttle has decided.
pub(crate) fn letter(letter: &DeadLetter, line: LetterLine) {
    let DeadLetter { target, incarnation, reason, event_type, error, .. } = letter;
    let cause = || error.as_ref().map(|error| error.to_string());
    match line {
        LetterLine::Counted { count } => warn!(
            target: "verger::dead_letter",
            child = %target, incarnation, %reason, event_type, cause = cause(), count, "dead letter"
        ),
        LetterLine::Last { count, pause } => warn!(
            target: "verger::dead_letter",
            child = %target, incarnation, %reason, event_type, cause = cause(), count, ?pause,
            "dead letter; no more are logged for a while"
        ),
        LetterLine::Resumed { total, unlogged } => warn!(
            target: "verger::dead_letter",
            child = %target, incarnation, %reason, event_type, cause = cause(), total, unlogged,
            "dead letter; some before were not logged, and counting begins again"
        ),
    }
}

/// Logs a letter about a message that was dropped as configured.
pub(crate) fn quiet_letter(letter: &DeadLetter) {
    let DeadLetter { target, incarnation, reason, event_type, .. } = letter;
    debug!(
        target: "verger::dead_letter",
        child = %target, incarnation, %reason, event_type, "dead letter"
    );
}

/// Logs a letter that was not delivered itself, and is dropped.
pub(crate) fn dropped_letter(undelivered: &Undelivered) {
    let Undelivered { target, incarnation, reason, .. } = undelivered;
    debug!(
        target: "verger::dead_letter",
        child = %target, incarnation, %reason, "a dead letter that was not delivered: dropped"
    );
}
