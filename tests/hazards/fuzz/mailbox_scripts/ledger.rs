//! The ledger of all messages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use verger::dead_letter::DeadLetterReason;
use verger::mailbox::Reply;

use super::script::{Script, Then};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The child has received or acknowledged it.
    Handled,
    /// The child that it was forwarded to has received it.
    Forwarded,
    /// The handler of a mailbox whose child is down has taken it.
    Diverted,
    DeadLetter(DeadLetterReason),
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The mailbox has accepted the message. `None`: not yet known.
    pub(super) accepted: Option<bool>,
    pub(super) fate: Option<Fate>,
    /// The number of the last attempt to deliver it.
    pub(super) attempts: u32,
    /// It was sent without waiting, by the sender that the script is.
    pub(super) in_order: bool,
    pub(super) answered: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) entries: Mutex<BTreeMap<u32, Entry>>,
    pub(super) violations: Mutex<Vec<String>>,
    pub(super) live: AtomicUsize,
    /// The last message that was received in its first attempt, of those sent without waiting.
    pub(super) last: Mutex<u32>,
    pub(super) keeps_order: bool,
}

impl Ledger {
    pub(super) fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    pub(super) fn entry<T>(&self, number: u32, change: impl FnOnce(&mut Entry) -> T) -> T {
        change(self.entries.lock().unwrap().entry(number).or_default())
    }

    pub(super) fn fate(&self, number: u32, fate: Fate) {
        let before = self.entry(number, |entry| entry.fate.replace(fate));
        if let Some(before) = before {
            self.violation(format!("message {number} was {before:?}, and then {fate:?}"));
        }
    }

    /// The child has received a message for the first time.
    pub(super) fn received(&self, number: u32) {
        if self.keeps_order && self.entry(number, |entry| entry.in_order) {
            let last = std::mem::replace(&mut *self.last.lock().unwrap(), number);
            if last >= number {
                self.violation(format!("message {number} was received after message {last}"));
            }
        }
    }

    pub(super) fn attempt(&self, number: u32, attempt: u32) {
        let before = self.entry(number, |entry| std::mem::replace(&mut entry.attempts, attempt));
        if attempt != before + 1 {
            self.violation(format!("attempt {attempt} of message {number} follows {before}"));
        }
        if attempt == 1 {
            self.received(number);
        }
    }

    /// Returns the accepted messages that have met no fate.
    pub(super) fn open(&self) -> Vec<u32> {
        let entries = self.entries.lock().unwrap();
        for (number, entry) in entries.iter() {
            if entry.accepted == Some(false) && entry.fate.is_some() {
                self.violation(format!("message {number} was refused: {entry:?}"));
            }
        }
        let open = entries.iter().filter(|(_, it)| it.accepted == Some(true) && it.fate.is_none());
        open.map(|(number, _)| *number).collect()
    }

    pub(super) fn check(&self, when: &str, script: &Script) {
        let violations = self.violations.lock().unwrap();
        assert!(violations.is_empty(), "{when}: {violations:#?}\n{script:#?}");
    }
}

pub(super) struct Message {
    pub(super) number: u32,
    pub(super) then: Then,
    pub(super) ledger: Arc<Ledger>,
    pub(super) reply: Option<Reply<u32>>,
}

impl Message {
    pub(super) fn answer(&self) {
        if let Some(reply) = &self.reply {
            self.ledger.entry(self.number, |entry| entry.answered = true);
            reply.send(self.number);
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.ledger.live.fetch_sub(1, Ordering::Relaxed);
    }
}
