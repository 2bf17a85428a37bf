//! The texts of errors.

use std::time::Duration;

use super::super::ask::AskError;
use super::*;

/// A message without `Debug`.
struct Secret;

fn child() -> Option<Path> {
    Some(Path::root("app").join("db"))
}

#[test]
fn a_send_error_names_the_child_and_the_capacity_but_not_the_message() {
    let table = [
        (
            SendError::Full { message: Secret, child: child(), capacity: 3 },
            "the mailbox of `app/db` is full (capacity 3); wait for room with `send`, or raise the \
             capacity",
        ),
        (
            SendError::Full { message: Secret, child: None, capacity: 1 },
            "the mailbox of a child whose tree was not started is full (capacity 1); wait for room \
             with `send`, or raise the capacity",
        ),
        (
            SendError::Closed { message: Secret, child: child() },
            "the mailbox of `app/db` is closed: the child is stopping, or is down and will not be \
             restarted",
        ),
        (
            SendError::Closed { message: Secret, child: None },
            "the mailbox of a child whose tree was not started is closed: the child is \
             stopping, or is down and will not be restarted",
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), text);
        assert_eq!(AskError::from(error).to_string(), text);
    }
}

#[test]
fn an_ask_error_says_what_happened_to_the_question() {
    let (within, reason) = (Duration::from_millis(1500), DeadLetterReason::Poison);
    let table = [
        (
            AskError::Undelivered { child: child(), reason },
            format!("the question to `app/db` was not delivered: {reason}"),
        ),
        (
            AskError::NoReply { child: child() },
            "`app/db` has read the question and dropped its `Reply` without an answer".to_owned(),
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
fn either_send_error_returns_the_message() {
    let full = SendError::Full { message: 1, child: None, capacity: 1 };
    let closed = SendError::Closed { message: 2, child: None };
    assert_eq!((full.into_message(), closed.into_message()), (1, 2));
}
