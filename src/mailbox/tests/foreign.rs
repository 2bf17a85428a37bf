//! What belongs to others is never run, nor dropped, under the lock, and may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::{Address, WhileDown};
use super::*;

/// Sends to the mailbox, and looks at it, when it is dropped.
struct Calls(Address<Option<Calls>>);

impl Drop for Calls {
    fn drop(&mut self) {
        let _ = self.0.try_send(None);
    }
}

#[test]
fn a_message_is_not_lost_to_a_panic_about_whether_it_is_the_last() {
    let mut post = Post::new(1);
    post.shared.edit(|options| options.final_message = Some(Arc::new(|_: &u32| panic!("unsure"))));
    let mut inbox = post.lend();
    post.try_send(1).unwrap();

    let delivered = catch_unwind(AssertUnwindSafe(|| inbox.try_deliver().is_some()));

    assert!(delivered.is_err());
    assert_eq!(post.shared.load().0, 1);
    post.shared.edit(|options| options.final_message = None);
    assert_eq!(inbox.try_deliver().map(|it| (it.attempt(), it.ack())), Some((2, 1)));
    assert_eq!(post.shared.load().0, 0);
}

#[test]
fn what_was_said_of_a_mailbox_before_may_use_it_when_it_is_dropped() {
    let shared = Arc::new(Shared::new(9));
    let calls = Calls(Address::new(Arc::clone(&shared)));
    let reply = WhileDown::reply(move |_| assert!(!calls.0.is_empty()));
    shared.edit(|options| std::mem::replace(&mut options.while_down, reply));

    shared.edit(|options| std::mem::replace(&mut options.while_down, WhileDown::Drop));

    assert_eq!(shared.load().0, 1);
}
