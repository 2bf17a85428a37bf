//! Foreign code is never called or dropped under the lock, and may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::address::Address;
use super::super::options::WhileDown;
use super::*;
use crate::panic::Foreign;

/// Sends to the mailbox when it is dropped.
struct SendsOnDrop(Address<Option<SendsOnDrop>>);

impl Drop for SendsOnDrop {
    fn drop(&mut self) {
        let _ = self.0.try_send(None);
    }
}

#[test]
fn a_panic_in_final_message_does_not_lose_the_message() {
    let mut mailbox = BoundMailbox::new(1);
    mailbox.shared.set_option(|options| {
        options.final_message = Some(Foreign::new(Arc::new(|_: &u32| panic!("unsure"))))
    });
    let mut inbox = mailbox.lend();
    mailbox.try_send(1).unwrap();

    let delivered = catch_unwind(AssertUnwindSafe(|| inbox.try_deliver().is_some()));

    assert!(delivered.is_err());
    assert_eq!(mailbox.shared.load().0, 1);
    mailbox.shared.set_option(|options| options.final_message = None);
    assert_eq!(inbox.try_deliver().map(|it| (it.attempt(), it.ack())), Some((2, 1)));
    assert_eq!(mailbox.shared.load().0, 0);
}

#[test]
fn dropping_a_replaced_option_may_use_the_mailbox() {
    let shared = Arc::new(MailboxShared::new(9));
    let calls = SendsOnDrop(Address::new(Arc::clone(&shared)));
    let reply = WhileDown::reply(move |_| assert!(!calls.0.is_empty()));
    shared.set_option(|options| std::mem::replace(&mut options.while_down, reply));

    shared.set_option(|options| std::mem::replace(&mut options.while_down, WhileDown::Drop));

    assert_eq!(shared.load().0, 1);
}
