use std::any::TypeId;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::DeadLetterReason::*;
use super::*;
use crate::deferred_drop::drop_afterwards;
use crate::exit::{ExitError, ExitReason};
use crate::path::Path;

fn letter<M: Send + 'static>(message: M) -> DeadLetter {
    let undelivered = Undelivered {
        reason: HandlerError,
        target: Path::root("app").join("orders"),
        incarnation: 2,
        event_type: "Order",
        type_id: TypeId::of::<M>(),
        payload: Some(Box::new(message)),
        error: Some(Arc::new(ExitReason::Failed(ExitError::from("no such item")))),
        quiet: false,
        entry: None,
        origin: None,
    };
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
    DeadLetter::about_message(undelivered, at, false).0
}

fn gave_up() -> DeadLetter {
    let error = Arc::new(ExitReason::Failed(ExitError::from("no database")));
    DeadLetter::about_child(GaveUp, Path::root("app"), 1, error, SystemTime::UNIX_EPOCH)
}

#[test]
fn a_message_is_taken_once_by_the_first_subscriber() {
    let first = letter("hello".to_owned());
    let second = first.clone();
    assert_eq!(first.take::<u32>(), None, "it is no number and stays");
    assert_eq!(second.take(), Some("hello".to_owned()));
    assert_eq!(first.take::<String>(), None);
    assert_eq!(second.take::<String>(), None);
}

#[test]
fn of_many_threads_that_take_a_message_one_gets_it() {
    for _ in 0..50 {
        let letter = letter(7_u32);
        let taken = std::thread::scope(|scope| {
            let takers = [(); 4].map(|()| scope.spawn(|| letter.take::<u32>()));
            takers.map(|taker| taker.join().unwrap()).into_iter().flatten().count()
        });
        assert_eq!(taken, 1);
    }
}

#[test]
fn a_letter_keeps_the_type_of_its_message_after_it_was_taken() {
    let letter = letter(7_u32);
    assert!(letter.is::<u32>() && !letter.is::<u64>());
    assert_eq!(letter.take(), Some(7_u32));
    assert!(letter.is::<u32>());

    assert!(!gave_up().is::<()>());
    assert_eq!(gave_up().take::<()>(), None);
}

#[cfg(feature = "serde")]
#[test]
fn seed3_04_a_letter_has_its_type_target_reason_and_time() {
    let json = serde_json::json!({
        "reason": "handler_error",
        "target": "app/orders",
        "incarnation": 2,
        "event_type": "Order",
        "error": { "kind": "failed", "message": "failed: no such item" },
        "at_ms": 1500,
        "suppressed": false,
    });
    let letter = letter(7_u32);
    assert_eq!(serde_json::to_value(&letter).unwrap(), json);
    assert_eq!(letter.take(), Some(7_u32), "the message");
    let of_child = serde_json::to_value(gave_up()).unwrap();
    assert_eq!(of_child["event_type"], serde_json::Value::Null);
    let debug = format!("{letter:?}");
    assert!(debug.starts_with("DeadLetter { reason: HandlerError, target: app/orders"), "{debug}");
}

#[test]
fn seed3_05_reasons_are_stable_words() {
    let words = [
        (HandlerError, "handler_error"),
        (MailboxFull, "mailbox_full"),
        (MailboxClosed, "mailbox_closed"),
        (StashOverflow, "stash_overflow"),
        (DroppedWhileDown, "dropped_while_down"),
        (Evicted, "evicted"),
        (Poison, "poison"),
        (UndeliveredAtStop, "undelivered_at_stop"),
        (GaveUp, "gave_up"),
        (LostInFailure, "lost_in_failure"),
        (NoHandler, "no_handler"),
        (Timeout, "timeout"),
    ];
    for (reason, word) in words {
        assert_eq!(reason.to_string(), word);
        assert_eq!(word.parse::<DeadLetterReason>(), Ok(reason));
    }
    // The error lists each word, and the table has no other.
    let error = "gone".parse::<DeadLetterReason>().unwrap_err().to_string();
    let all = error.strip_prefix("unknown reason of a dead letter `gone`; write ").unwrap();
    let all: Vec<_> = all.split('`').skip(1).step_by(2).collect();
    assert_eq!(all, words.map(|(_, word)| word));
    let is_snake = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    assert!(all.iter().all(|word| is_snake(word)), "{all:?}");
}

/// Records the order of drops.
struct Noting(&'static str);

thread_local! {
    static NOTES: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn note(what: &'static str) {
    NOTES.with_borrow_mut(|notes| notes.push(what));
}

impl Drop for Noting {
    fn drop(&mut self) {
        note(self.0);
        // As if this sent a message that becomes a letter, and is dropped at once.
        if self.0 == "outer" {
            drop_afterwards(|| {
                drop(letter(Noting("inner")));
                note("under the second lock");
            });
        }
    }
}

#[test]
fn a_message_is_dropped_after_the_lock_is_free() {
    drop_afterwards(|| {
        drop_afterwards(|| drop(letter(Noting("outer"))));
        note("under the lock");
    });
    note("afterwards");
    drop(letter(Noting("at once")));
    let expected =
        ["under the lock", "outer", "under the second lock", "inner", "afterwards", "at once"];
    assert_eq!(NOTES.take(), expected);
}
