//! The texts of errors, for people who read logs.

use std::time::Duration;

use super::super::{AskError, SendError};
use super::*;

/// A message that can't be printed, and need not be.
struct Secret;

fn child() -> Option<Path> {
    Some(Path::root("app").join("db"))
}

#[test]
fn an_error_of_a_send_names_the_child_and_the_room_and_not_the_message() {
    let table = [
        (
            SendError::Full { message: Secret, child: child(), capacity: 3 },
            "the mailbox of `app/db` is full: 3 messages wait",
        ),
        (
            SendError::Full { message: Secret, child: None, capacity: 1 },
            "the mailbox of a child whose tree was not started is full: 1 messages wait",
        ),
        (
            SendError::Closed { message: Secret, child: child() },
            "the mailbox of `app/db` is closed: it is down for good, or stopping",
        ),
        (
            SendError::Closed { message: Secret, child: None },
            "the mailbox of a child whose tree was not started is closed: it is down for good, \
             or stopping",
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), text);
        assert_eq!(AskError::from(error).to_string(), text);
    }
}

#[test]
fn an_error_of_a_question_says_what_has_become_of_it() {
    let (within, reason) = (Duration::from_millis(1500), DeadLetterReason::Poison);
    let table = [
        (
            AskError::Undelivered { child: child(), reason },
            format!("the question to `app/db` was not delivered: {reason}"),
        ),
        (
            AskError::NoReply { child: child() },
            "`app/db` has read the question, and dropped it or failed without an answer".to_owned(),
        ),
        (
            AskError::TimedOut { child: child(), within },
            "`app/db` did not answer within 1.5s".to_owned(),
        ),
        (
            AskError::TimedOut { child: None, within: Duration::ZERO },
            "a child whose tree was not started did not answer within 0ns".to_owned(),
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), text);
    }
}

#[test]
fn a_message_comes_back_out_of_either_error() {
    let full = SendError::Full { message: 1, child: None, capacity: 1 };
    let closed = SendError::Closed { message: 2, child: None };
    assert_eq!((full.into_message(), closed.into_message()), (1, 2));
}
