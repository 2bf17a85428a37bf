//! All interleavings of two or three threads that use a mailbox.

use std::future::poll_fn;

use loom::thread;

use super::super::address::Address;
use super::super::inbox::Next;
use super::super::options::Closing;
use super::*;
use crate::sync::model::{Task, check};

/// Receives `count` messages, waiting for them.
fn receive(mailbox: &BoundMailbox<u32>, loan: u64, count: usize) -> Vec<u32> {
    let task = Task::new();
    let mut received = Vec::new();
    while received.len() < count {
        let next = task.run(poll_fn(|cx| mailbox.next(loan, Take::Receive, cx.waker())));
        let Some(envelope) = next else { break };
        received.push(envelope.message);
    }
    received
}

fn sending(
    mailbox: &BoundMailbox<u32>,
    message: u32,
) -> thread::JoinHandle<Result<(), SendError<u32>>> {
    let address = Address::new(Arc::clone(&mailbox.shared));
    thread::spawn(move || Task::new().run(address.send(message)))
}

#[test]
fn loom_a_pending_inbox_is_woken_by_a_message() {
    check(|| {
        let mut mailbox = BoundMailbox::new(2);
        let (loan, _) = mailbox.loan();
        let sending = sending(&mailbox, 1);

        assert_eq!(receive(&mailbox, loan, 1), [1]);

        sending.join().unwrap().unwrap();
    });
}

#[test]
fn loom_two_senders_with_room_for_one_send_once_each() {
    check(|| {
        let mut mailbox = BoundMailbox::new(1);
        let (loan, _) = mailbox.loan();
        let sending = [sending(&mailbox, 1), sending(&mailbox, 2)];

        let mut received = receive(&mailbox, loan, 2);

        for sending in sending {
            sending.join().unwrap().unwrap();
        }
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_an_inbox_is_woken_by_a_sender_that_an_ack_has_made_room_for() {
    check(|| {
        let mut mailbox = BoundMailbox::new(1);
        let mut inbox = mailbox.lend();
        mailbox.try_send(1).unwrap();
        let delivery = inbox.try_deliver().unwrap();
        let sending = sending(&mailbox, 2);
        let acking = thread::spawn(move || delivery.ack());

        let second = Task::new().run(poll_fn(|cx| mailbox.next(1, Take::Receive, cx.waker())));

        assert_eq!(second.map(|it| it.message), Some(2));
        sending.join().unwrap().unwrap();
        acking.join().unwrap();
    });
}

#[test]
fn loom_a_sender_that_waits_while_the_mailbox_is_closed_gets_its_message_back() {
    check(|| {
        let mut mailbox = BoundMailbox::new(1);
        mailbox.loan();
        mailbox.try_send(1).unwrap();
        let sending = sending(&mailbox, 2);

        mailbox.close(DeadLetterReason::GaveUp);

        let back = sending.join().unwrap().unwrap_err().into_message();
        assert_eq!(back, 2);
        assert_eq!(mailbox.owner.letters(), [(DeadLetterReason::GaveUp, 1_u32)]);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_a_message_sent_while_the_mailbox_is_closed_comes_back_or_is_a_dead_letter() {
    check(|| {
        let mut mailbox = BoundMailbox::new(2);
        mailbox.loan();
        let sending = sending(&mailbox, 1);

        mailbox.close(DeadLetterReason::GaveUp);

        let letters = mailbox.owner.letters::<u32>().len();
        let back = usize::from(sending.join().unwrap().is_err());
        assert_eq!(letters + mailbox.owner.letters::<u32>().len() + back, 1);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_a_message_sent_while_the_inbox_is_dropped_notifies_the_supervisor_or_was_received() {
    check(|| {
        let mut mailbox = BoundMailbox::start_on_message(2);
        let mut inbox = mailbox.lend();
        let sending = sending(&mailbox, 1);

        let read = inbox.try_recv().is_some();
        drop(inbox);
        mailbox.mark_idle();

        sending.join().unwrap().unwrap();
        // Or it was sent after the inbox was dropped and before the child was idle.
        let letters = mailbox.owner.letters::<u32>().len();
        let waits = mailbox.shared.load().0;
        assert_eq!(usize::from(read) + letters + waits, 1);
        assert_eq!(mailbox.owner.notifications(), waits);
    });
}

#[test]
fn loom_a_delivery_dropped_while_the_mailbox_is_closed_is_a_dead_letter() {
    check(|| {
        let mut mailbox = BoundMailbox::<u32>::new(1);
        let mut inbox = mailbox.lend();
        mailbox.try_send(1).unwrap();
        let delivery = inbox.try_deliver().unwrap();
        let dropping = thread::spawn(move || drop(delivery));

        mailbox.close(DeadLetterReason::GaveUp);

        dropping.join().unwrap();
        assert_eq!(mailbox.owner.letters(), [(DeadLetterReason::GaveUp, 1_u32)]);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_the_room_of_a_dropped_sender_goes_to_the_next() {
    check(|| {
        let mut mailbox = BoundMailbox::new(1);
        let (loan, _) = mailbox.loan();
        mailbox.try_send(1).unwrap();
        let number = mailbox.wait(2, None, Waker::noop()).unwrap();
        let sending = sending(&mailbox, 3);
        let shared = Arc::clone(&mailbox.shared);
        let leaving = thread::spawn(move || shared.step(|state, fx| state.leave(number, fx)));

        assert_eq!(receive(&mailbox, loan, 2), [1, 3]);

        leaving.join().unwrap();
        sending.join().unwrap().unwrap();
    });
}

/// An inbox that has received the first of `messages`.
fn started(capacity: usize, messages: u32) -> (BoundMailbox<u32>, Inbox<u32>) {
    let mut mailbox = BoundMailbox::new(capacity);
    let mut inbox = mailbox.lend();
    (1..=messages).for_each(|it| mailbox.try_send(it).unwrap());
    assert_eq!(inbox.try_recv(), Some(1));
    (mailbox, inbox)
}

#[test]
fn loom_messages_are_received_or_dead_letters_if_the_mailbox_is_closed_meanwhile() {
    check(|| {
        let (mailbox, mut inbox) = started(3, 3);
        let reading = thread::spawn(move || {
            let read: Vec<_> = std::iter::from_fn(|| inbox.try_recv()).collect();
            drop(inbox);
            read
        });

        mailbox.close(DeadLetterReason::GaveUp);

        let mut all = reading.join().unwrap();
        all.extend(mailbox.owner.letters::<u32>().into_iter().map(|(_, message)| message));
        assert_eq!(all, [2, 3]);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_a_sender_that_waits_for_room_sends_behind_the_queued_messages() {
    check(|| {
        let (mailbox, mut inbox) = started(2, 2);
        mailbox.try_send(3).unwrap();
        let sending = sending(&mailbox, 4);

        let mut read = Vec::new();
        let task = Task::new();
        while read.len() < 3 {
            read.extend(task.run(inbox.recv()));
            assert!(mailbox.shared.load().0 <= 2);
        }

        sending.join().unwrap().unwrap();
        assert_eq!(read, [2, 3, 4]);
        assert_eq!(mailbox.shared.load().0, 0);
    });
}

#[test]
fn loom_messages_are_received_once_if_the_mailbox_is_lent_again_meanwhile() {
    check(|| {
        let (mut mailbox, mut inbox) = started(3, 3);
        let reading = thread::spawn(move || {
            let read: Vec<_> = std::iter::from_fn(|| inbox.try_recv()).collect();
            drop(inbox);
            read
        });

        let mut next = mailbox.lend();
        let mut rest: Vec<_> = std::iter::from_fn(|| next.try_recv()).collect();

        let mut all = reading.join().unwrap();
        all.append(&mut rest);
        assert_eq!(all, [2, 3]);
        assert!(next.is_empty());
    });
}

#[test]
fn loom_an_inbox_that_awaits_its_cancellation_is_woken_by_it() {
    check(|| {
        let mut mailbox = BoundMailbox::<u32>::new(1);
        mailbox.shared.set_option(|options| options.closing = Closing::Manually);
        let mut inbox = mailbox.lend();
        let shared = Arc::clone(&mailbox.shared);
        let stopping = thread::spawn(move || shared.begin_stop(true));

        assert_eq!(Task::new().run(inbox.next()), Next::Stopping);

        stopping.join().unwrap();
        assert!(!mailbox.shared.state().is_closed());
    });
}

#[test]
fn loom_a_message_sent_while_the_mailbox_is_closed_by_force_is_received_or_comes_back() {
    check(|| {
        let mut mailbox = BoundMailbox::new(1);
        mailbox.shared.set_option(|options| options.closing = Closing::Manually);
        let mut inbox = mailbox.lend();
        let sending = sending(&mailbox, 1);
        let shared = Arc::clone(&mailbox.shared);
        let stopping = thread::spawn(move || shared.force_close());

        let task = Task::new();
        let (mut stops, mut received) = (0, 0);
        loop {
            match task.run(inbox.next()) {
                Next::Message(_) => received += 1,
                Next::Stopping => stops += 1,
                Next::Closed => break,
            }
        }

        let back = usize::from(sending.join().unwrap().is_err());
        stopping.join().unwrap();
        assert_eq!((stops, received + back), (1, 1));
    });
}
