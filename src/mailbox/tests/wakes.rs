//! Who waits is woken: for each step after which there is something to be had, that whoever was told
//! `Nothing`, or waits for room, hears of it.

use std::task::Wake;

use super::*;

/// A waker that counts.
#[derive(Default)]
pub(super) struct Bell(AtomicUsize);

impl Bell {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        (Arc::clone(&bell), Waker::from(bell))
    }

    /// Since this was asked last.
    pub(super) fn rings(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A mailbox with room for one, whose message is in somebody's hand: the reader waits for another,
/// and a sender for room.
fn crowded() -> (Post<u32>, u64, Envelope<u32>, Arc<Bell>, Arc<Bell>) {
    let mut post = Post::new(1);
    let loan = post.loan();
    post.try_send(1).unwrap();
    let Poll::Ready(Some(first)) = post.next(loan, true, Waker::noop()) else {
        panic!("1 is there")
    };
    let ((sender, sends), (reader, reads)) = (Bell::new(), Bell::new());
    assert_eq!(post.wait(2, None, &sends), Some(0));
    assert!(post.next(loan, true, &reads).is_pending());
    (post, loan, first, sender, reader)
}

#[test]
fn a_reader_is_woken_for_the_message_of_a_sender_that_an_ack_lets_in() {
    let (post, loan, first, sender, reader) = crowded();

    post.shared.acked(&first, &*post.reader);

    assert_eq!((sender.rings(), reader.rings()), (1, 0));
    assert_eq!(post.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(reader.rings(), 1);
    assert!(post.next(loan, true, Waker::noop()).is_ready());
}

#[test]
fn a_reader_is_woken_for_the_message_of_a_sender_that_a_poisonous_one_makes_room_for() {
    let (post, loan, first, sender, reader) = crowded();
    post.shared.edit(|options| options.max_attempts = Some(std::num::NonZeroU32::MIN));

    post.shared.came_back(first, loan, &*post.reader);

    assert_eq!(post.office.letters(), [(DeadLetterReason::Poison, 1_u32)]);
    assert_eq!((sender.rings(), reader.rings()), (1, 0));
    assert_eq!(post.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(reader.rings(), 1);
    assert!(post.next(loan, true, Waker::noop()).is_ready());
}

#[test]
fn a_message_for_a_resting_child_wants_it_though_its_last_run_has_the_inbox_still() {
    let mut post = Post::on_message(4);
    let inbox = post.lend();

    // The child is down, says the supervisor; the inbox is somewhere else.
    post.shared.rest();
    post.try_send(1).unwrap();

    assert_eq!(post.office.wanted(), 1);
    drop(inbox);
    assert_eq!(post.office.wanted(), 0, "it has no say any more");
    assert_eq!(post.shared.load().0, 1);
}

#[test]
fn who_has_the_inbox_of_a_resting_child_finds_the_end() {
    let mut post = Post::<u32>::on_message(4);
    let loan = post.loan();
    let (reader, reads) = Bell::new();
    assert!(post.next(loan, false, &reads).is_pending());

    post.shared.rest();

    assert_eq!(reader.rings(), 1);
    assert!(matches!(post.next(loan, false, &reads), Poll::Ready(None)));
}

#[test]
fn a_message_for_a_resting_child_wants_it_though_its_last_run_had_closed_the_inbox() {
    let mut post = Post::on_message(4);
    let mut inbox = post.lend();
    inbox.close();
    drop(inbox);

    post.shared.rest();

    post.try_send(1).unwrap();
    assert_eq!(post.office.wanted(), 1);
}

#[test]
fn a_message_that_an_ack_has_made_room_for_wants_a_child_that_rests() {
    let mut post = Post::on_message(1);
    let mut inbox = post.lend();
    post.try_send(1).unwrap();
    let delivery = inbox.try_deliver().unwrap();
    drop(inbox);
    post.shared.rest();
    let (sender, sends) = Bell::new();
    assert_eq!(post.wait(2, None, &sends), Some(0));

    delivery.ack();

    assert_eq!((sender.rings(), post.office.wanted()), (1, 0));
    assert_eq!(post.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(post.office.wanted(), 1);
}

/// How often a child that messages start is wanted, after a run that did something with the first of
/// two messages.
fn wanted_after(most: Option<u32>, run: impl FnOnce(super::super::Delivery<u32>)) -> usize {
    let mut post = Post::on_message(4);
    post.shared.edit(|options| options.max_attempts = most.and_then(std::num::NonZeroU32::new));
    (1..=2).for_each(|message| post.try_send(message).unwrap());
    let mut inbox = post.lend();
    post.office.wanted();
    run(inbox.try_deliver().unwrap());
    drop(inbox);
    post.office.wanted()
}

#[test]
fn what_a_run_has_left_wants_the_next_if_it_has_brought_the_end_nearer() {
    assert_eq!(wanted_after(None, |it| assert_eq!(it.ack(), 1)), 1);
    assert_eq!(wanted_after(Some(5), drop), 1, "some day it is poison");
    assert_eq!(wanted_after(None, drop), 0, "it may fail like that for ever");
}

#[test]
fn an_incarnation_is_not_ready_because_an_earlier_one_is() {
    let mut post = Post::new(4);
    post.shared.edit(|options| options.drain = Some(super::super::Drain::AtReady));
    post.try_send(1).unwrap();
    let loan = post.loan();

    // Of a supervisor that was restarted since, or of another child.
    let other = (post.spot().0 + 1, post.spot().1);
    for (spot, incarnation) in [(post.spot(), 0), (other, 1)] {
        post.shared.ready(spot, incarnation);
        assert!(post.next(loan, false, Waker::noop()).is_pending());
    }

    post.shared.ready(post.spot(), 1);
    assert!(post.next(loan, false, Waker::noop()).is_ready());
}

#[test]
fn before_its_tree_runs_a_mailbox_rejects_what_is_too_much() {
    for overflow in [super::super::Overflow::DropOldest, super::super::Overflow::DropNewest] {
        let shared = Arc::new(Shared::new(1));
        shared.edit(|options| options.overflow = overflow);
        let send = |message| shared.send(message, Origin::Sent, None, Patience::None);
        send(1).unwrap();
        assert!(matches!(send(2), Err(SendError::Full { message: 2, child: None, capacity: 1 })));
        assert_eq!(shared.load().0, 1);
    }
}
