//! Every interleaving of two or three who use a mailbox at once.

use std::future::poll_fn;

use loom::thread;

use super::super::Address;
use super::*;
use crate::sync::model::{Task, check};

/// Reads until it has so many, and waits when there is nothing.
fn read(post: &Post<u32>, loan: u64, count: usize) -> Vec<u32> {
    let task = Task::new();
    let mut read = Vec::new();
    while read.len() < count {
        let next = task.run(poll_fn(|cx| post.next(loan, false, cx.waker())));
        let Some(envelope) = next else { break };
        read.push(envelope.message);
    }
    read
}

fn sending(post: &Post<u32>, message: u32) -> thread::JoinHandle<Result<(), SendError<u32>>> {
    let address = Address::new(Arc::clone(&post.shared));
    thread::spawn(move || Task::new().run(address.send(message)))
}

#[test]
fn loom_a_reader_who_found_nothing_is_woken_by_a_message() {
    check(|| {
        let mut post = Post::new(2);
        let loan = post.loan();
        let sending = sending(&post, 1);

        assert_eq!(read(&post, loan, 1), [1]);

        sending.join().unwrap().unwrap();
    });
}

#[test]
fn loom_two_senders_and_room_for_one_get_in_once_each() {
    check(|| {
        let mut post = Post::new(1);
        let loan = post.loan();
        let sending = [sending(&post, 1), sending(&post, 2)];

        let mut read = read(&post, loan, 2);

        for sending in sending {
            sending.join().unwrap().unwrap();
        }
        read.sort_unstable();
        assert_eq!(read, [1, 2]);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_a_reader_hears_of_the_sender_whom_another_lets_in() {
    check(|| {
        let mut post = Post::new(1);
        let mut inbox = post.lend();
        post.try_send(1).unwrap();
        let delivery = inbox.try_deliver().unwrap();
        let sending = sending(&post, 2);
        let acking = thread::spawn(move || delivery.ack());

        let second = Task::new().run(poll_fn(|cx| post.next(1, false, cx.waker())));

        assert_eq!(second.map(|it| it.message), Some(2));
        sending.join().unwrap().unwrap();
        acking.join().unwrap();
    });
}

#[test]
fn loom_who_waits_for_room_when_the_mailbox_goes_away_has_his_message_back() {
    check(|| {
        let mut post = Post::new(1);
        post.loan();
        post.try_send(1).unwrap();
        let sending = sending(&post, 2);

        post.shared.away(DeadLetterReason::GaveUp);

        let back = sending.join().unwrap().unwrap_err().into_message();
        assert_eq!(back, 2);
        assert_eq!(post.office.letters(), [(DeadLetterReason::GaveUp, 1_u32)]);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_what_is_sent_while_the_mailbox_goes_away_comes_back_or_is_a_letter() {
    check(|| {
        let mut post = Post::new(2);
        post.loan();
        let sending = sending(&post, 1);

        post.shared.away(DeadLetterReason::GaveUp);

        let letters = post.office.letters::<u32>().len();
        let back = usize::from(sending.join().unwrap().is_err());
        assert_eq!(letters + post.office.letters::<u32>().len() + back, 1);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_what_is_sent_while_the_inbox_is_dropped_is_told_to_the_supervisor_or_was_read() {
    check(|| {
        let mut post = Post::on_message(2);
        let mut inbox = post.lend();
        let sending = sending(&post, 1);

        let read = inbox.try_recv().is_some();
        drop(inbox);
        post.shared.rest();

        sending.join().unwrap().unwrap();
        // Or it came when nobody read any more, and before the child was down.
        let letters = post.office.letters::<u32>().len();
        let waits = post.shared.load().0;
        assert_eq!(usize::from(read) + letters + waits, 1);
        assert_eq!(post.office.wanted(), waits);
    });
}

#[test]
fn loom_a_delivery_that_comes_back_while_the_mailbox_goes_away_is_a_letter() {
    check(|| {
        let mut post = Post::<u32>::new(1);
        let mut inbox = post.lend();
        post.try_send(1).unwrap();
        let delivery = inbox.try_deliver().unwrap();
        let dropping = thread::spawn(move || drop(delivery));

        post.shared.away(DeadLetterReason::GaveUp);

        dropping.join().unwrap();
        assert_eq!(post.office.letters(), [(DeadLetterReason::GaveUp, 1_u32)]);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_the_room_of_a_sender_who_gives_up_goes_to_the_next() {
    check(|| {
        let mut post = Post::new(1);
        let loan = post.loan();
        post.try_send(1).unwrap();
        let number = post.wait(2, None, Waker::noop()).unwrap();
        let sending = sending(&post, 3);
        let shared = Arc::clone(&post.shared);
        let leaving = thread::spawn(move || shared.leave(number));

        assert_eq!(read(&post, loan, 2), [1, 3]);

        leaving.join().unwrap();
        sending.join().unwrap().unwrap();
    });
}

/// A reader who has one of `messages` and has taken the others over.
fn ahead(capacity: usize, messages: u32) -> (Post<u32>, Inbox<u32>) {
    let mut post = Post::new(capacity);
    let mut inbox = post.lend();
    (1..=messages).for_each(|it| post.try_send(it).unwrap());
    assert_eq!(inbox.try_recv(), Some(1));
    (post, inbox)
}

#[test]
fn loom_what_a_reader_took_over_is_read_or_a_letter_when_the_mailbox_goes_away() {
    check(|| {
        let (post, mut inbox) = ahead(3, 3);
        let reading = thread::spawn(move || {
            let read: Vec<_> = std::iter::from_fn(|| inbox.try_recv()).collect();
            drop(inbox);
            read
        });

        post.shared.away(DeadLetterReason::GaveUp);

        let mut all = reading.join().unwrap();
        all.extend(post.office.letters::<u32>().into_iter().map(|(_, message)| message));
        assert_eq!(all, [2, 3]);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_who_wants_the_room_of_what_a_reader_took_over_gets_in_behind_it() {
    check(|| {
        let (post, mut inbox) = ahead(2, 2);
        post.try_send(3).unwrap();
        let sending = sending(&post, 4);

        let mut read = Vec::new();
        let task = Task::new();
        while read.len() < 3 {
            read.extend(task.run(inbox.recv()));
            assert!(post.shared.load().0 <= 2);
        }

        sending.join().unwrap().unwrap();
        assert_eq!(read, [2, 3, 4]);
        assert_eq!(post.shared.load().0, 0);
    });
}

#[test]
fn loom_what_a_reader_took_over_is_the_next_ones_who_has_the_mailbox_lent_meanwhile() {
    check(|| {
        let (mut post, mut inbox) = ahead(3, 3);
        let reading = thread::spawn(move || {
            let read: Vec<_> = std::iter::from_fn(|| inbox.try_recv()).collect();
            drop(inbox);
            read
        });

        let mut next = post.lend();
        let mut rest: Vec<_> = std::iter::from_fn(|| next.try_recv()).collect();

        let mut all = reading.join().unwrap();
        all.append(&mut rest);
        assert_eq!(all, [2, 3]);
        assert!(next.is_empty());
    });
}
