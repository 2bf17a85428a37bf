//! A pending inbox is woken by each step that gives it a message or the end, and a waiting sender by
//! each step that gives it room.

use std::task::Wake;

use super::super::address::Address;
use super::*;

/// A waker that counts its calls.
#[derive(Default)]
pub(super) struct CountingWaker(AtomicUsize);

impl CountingWaker {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let counter = Arc::new(Self::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    /// Returns the number of wakes since the last call.
    pub(super) fn wakes(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A mailbox of capacity one whose message is lent: the inbox waits for a message and a sender for
/// room.
fn crowded() -> (BoundMailbox<u32>, u64, Envelope<u32>, Arc<CountingWaker>, Arc<CountingWaker>) {
    let mut mailbox = BoundMailbox::new(1);
    let (loan, _) = mailbox.loan();
    mailbox.try_send(1).unwrap();
    let Poll::Ready(Some(first)) = mailbox.next(loan, Take::Deliver, Waker::noop()) else {
        panic!("1 is queued")
    };
    let ((sender, sends), (reader, reads)) = (CountingWaker::new(), CountingWaker::new());
    assert_eq!(mailbox.wait(2, None, &sends), Some(0));
    assert!(mailbox.next(loan, Take::Deliver, &reads).is_pending());
    (mailbox, loan, first, sender, reader)
}

#[test]
fn an_inbox_is_woken_for_the_message_of_a_sender_that_an_ack_has_made_room_for() {
    let (mailbox, loan, first, sender, reader) = crowded();

    mailbox.shared.ack(&first, &*mailbox.holder);

    assert_eq!((sender.wakes(), reader.wakes()), (1, 0));
    assert_eq!(mailbox.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(reader.wakes(), 1);
    assert!(mailbox.next(loan, Take::Deliver, Waker::noop()).is_ready());
}

#[test]
fn an_inbox_is_woken_for_the_message_of_a_sender_that_takes_the_place_of_a_poisonous_one() {
    let (mailbox, loan, first, sender, reader) = crowded();
    mailbox.shared.set_option(|options| options.max_attempts = Some(std::num::NonZeroU32::MIN));

    mailbox.put_back(first, loan, &mailbox.holder);

    assert_eq!(mailbox.owner.letters(), [(DeadLetterReason::Poison, 1_u32)]);
    assert_eq!((sender.wakes(), reader.wakes()), (1, 0));
    assert_eq!(mailbox.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(reader.wakes(), 1);
    assert!(mailbox.next(loan, Take::Deliver, Waker::noop()).is_ready());
}

#[test]
fn a_message_starts_an_idle_child_whose_last_incarnation_still_has_the_inbox() {
    let mut mailbox = BoundMailbox::start_on_message(4);
    let inbox = mailbox.lend();

    // The supervisor knows that the child is down; the inbox still exists.
    mailbox.mark_idle();
    mailbox.try_send(1).unwrap();

    assert_eq!(mailbox.owner.notifications(), 1);
    drop(inbox);
    assert_eq!(mailbox.owner.notifications(), 0, "its loan has ended");
    assert_eq!(mailbox.shared.load().0, 1);
}

#[test]
fn the_old_inbox_of_an_idle_child_receives_the_end() {
    let mut mailbox = BoundMailbox::<u32>::start_on_message(4);
    let (loan, _) = mailbox.loan();
    let (reader, reads) = CountingWaker::new();
    assert!(mailbox.next(loan, Take::Receive, &reads).is_pending());

    mailbox.mark_idle();

    assert_eq!(reader.wakes(), 1);
    assert!(matches!(mailbox.next(loan, Take::Receive, &reads), Poll::Ready(None)));
}

#[test]
fn a_message_starts_an_idle_child_whose_last_incarnation_had_closed_the_inbox() {
    let mut mailbox = BoundMailbox::start_on_message(4);
    let mut inbox = mailbox.lend();
    inbox.close();
    drop(inbox);

    mailbox.mark_idle();

    mailbox.try_send(1).unwrap();
    assert_eq!(mailbox.owner.notifications(), 1);
}

#[test]
fn a_message_that_an_ack_has_made_room_for_starts_an_idle_child() {
    let mut mailbox = BoundMailbox::start_on_message(1);
    let mut inbox = mailbox.lend();
    mailbox.try_send(1).unwrap();
    let delivery = inbox.try_deliver().unwrap();
    drop(inbox);
    mailbox.mark_idle();
    let (sender, sends) = CountingWaker::new();
    assert_eq!(mailbox.wait(2, None, &sends), Some(0));

    delivery.ack();

    assert_eq!((sender.wakes(), mailbox.owner.notifications()), (1, 0));
    assert_eq!(mailbox.wait(2, Some(0), Waker::noop()), None);
    assert_eq!(mailbox.owner.notifications(), 1);
}

/// Returns how often the supervisor is notified after an incarnation that has received the first of
/// two messages.
fn notifications_after(
    most: Option<u32>,
    incarnation: impl FnOnce(super::super::inbox::Delivery<u32>),
) -> usize {
    let mut mailbox = BoundMailbox::start_on_message(4);
    mailbox
        .shared
        .set_option(|options| options.max_attempts = most.and_then(std::num::NonZeroU32::new));
    (1..=2).for_each(|message| mailbox.try_send(message).unwrap());
    let mut inbox = mailbox.lend();
    mailbox.owner.notifications();
    incarnation(inbox.try_deliver().unwrap());
    drop(inbox);
    mailbox.owner.notifications()
}

#[test]
fn messages_left_by_an_incarnation_start_the_next_one_only_after_progress() {
    assert_eq!(notifications_after(None, |it| assert_eq!(it.ack(), 1)), 1);
    assert_eq!(notifications_after(Some(5), drop), 1, "it becomes poison at its fifth failure");
    assert_eq!(notifications_after(None, drop), 0, "it can fail forever");
}

#[test]
fn readiness_of_an_earlier_incarnation_does_not_count() {
    let mut mailbox = BoundMailbox::new(4);
    mailbox
        .shared
        .set_option(|options| options.drain = Some(super::super::options::Drain::AtReady));
    mailbox.try_send(1).unwrap();
    let (loan, _) = mailbox.loan();

    // An earlier incarnation, and a child of another supervisor with the same key.
    let other = ChildId::new(&Arc::new(0), mailbox.key);
    for (child, incarnation) in [(mailbox.child(), 0), (other, 1)] {
        mailbox.shared.mark_ready(child, incarnation);
        assert!(mailbox.next(loan, Take::Receive, Waker::noop()).is_pending());
    }

    mailbox.shared.mark_ready(mailbox.child(), 1);
    assert!(mailbox.next(loan, Take::Receive, Waker::noop()).is_ready());
}

#[test]
fn until_its_tree_is_started_a_full_mailbox_rejects() {
    for overflow in
        [super::super::options::Overflow::DropOldest, super::super::options::Overflow::DropNewest]
    {
        let shared = Arc::new(MailboxShared::new(1));
        shared.set_option(|options| options.overflow = overflow);
        let address = Address::new(Arc::clone(&shared));
        let send = |message| address.try_send(message);
        send(1).unwrap();
        assert!(matches!(send(2), Err(SendError::Full { message: 2, child: None, capacity: 1 })));
        assert_eq!(shared.load().0, 1);
    }
}
