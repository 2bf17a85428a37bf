//! Functions of a mailbox that send to their own mailbox: they are not called for that message.

use std::sync::atomic::{AtomicBool, Ordering};

use verger::mailbox::WhileDown;

use super::*;

/// A tree whose mailbox calls `handle` with its own address and each message while the child is down.
async fn tree_with_handler(
    handle: impl Fn(&Address<Message>, Message) + Send + Sync + 'static,
) -> Tree {
    let (address, mailbox) = mailbox();
    let own = address.clone();
    let mailbox = mailbox.while_down(WhileDown::reply(move |message| handle(&own, message)));
    Tree::start(Reader::new(), address, mailbox, |spec| spec).await
}

fn send_next(address: &Address<Message>, message: &Message) {
    if let Note(n) = message {
        address.try_send(Note(n + 1)).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_handler_sends_to_its_own_mailbox_is_a_dead_letter() {
    let mut tree = tree_with_handler(|address, message| send_next(address, &message)).await;
    tree.fail().await;

    tree.send([Note(1), Note(10)]);

    assert_eq!(tree.letters(), ["dropped_while_down: 2", "dropped_while_down: 11"]);
    tree.pass(WAIT).await;
    tree.send([Note(3)]);
    settle().await;
    assert_eq!(tree.log(), ["start#1", "start#2", "3#2"]);
    tree.handle.stop("enough").await.unwrap();
    assert!(tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn so_is_one_that_it_sends_when_it_gets_the_messages_that_an_incarnation_has_left() {
    let mut tree = tree_with_handler(|address, message| send_next(address, &message)).await;

    tree.send([Fail, Note(1)]);
    settle().await;

    assert_eq!(tree.letters(), ["dropped_while_down: 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_handler_asks_of_its_own_mailbox_is_refused() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&answers);
    let mut tree = tree_with_handler(move |address, _message| {
        let mut ask = Box::pin(address.ask(|reply| Ask(1, reply)));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        if let std::task::Poll::Ready(answer) = ask.as_mut().poll(&mut cx) {
            noted.lock().unwrap().push(text_of(answer));
        }
    })
    .await;
    tree.fail().await;

    tree.send([Note(1)]);

    let refused = "the question to `app/reader` was not delivered: dropped_while_down";
    assert_eq!(*answers.lock().unwrap(), [refused]);
    assert_eq!(tree.letters(), ["dropped_while_down: 1?"]);
}

#[tokio::test(start_paused = true)]
async fn handlers_that_send_to_the_mailbox_of_the_other_are_called_once_each() {
    let [(a, first), (b, second)] = [mailbox::<Message>(), mailbox()];
    let sends_to = |address: &Address<Message>| {
        let address = address.clone();
        WhileDown::reply(move |message| send_next(&address, &message))
    };
    let fails = |name, mailbox| {
        let run = async |_ctx, _inbox: Inbox<Message>| -> Exit { Err("always".into()) };
        worker_with_mailbox(name, mailbox, run)
    };
    let tree = app()
        .child(fails("first", first.while_down(sends_to(&b))))
        .child(fails("second", second.while_down(sends_to(&a))));
    let tree = tree.build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    settle().await;

    a.try_send(Note(1)).unwrap();

    let letter = letters.try_next().unwrap();
    assert_eq!(letter.target.as_str(), "app/first");
    assert!(matches!(letter.take(), Some(Note(3))), "both handlers were called before");
    assert!(letters.try_next().is_none());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_that_final_message_sends_to_its_own_mailbox_is_queued_and_is_not_final() {
    let (address, mailbox) = mailbox();
    let (own, sends) = (address.clone(), Arc::new(AtomicBool::new(false)));
    let is_sending = Arc::clone(&sends);
    let mailbox = mailbox.final_message(move |message| {
        if is_sending.load(Ordering::SeqCst) {
            own.try_send(End).unwrap();
        }
        matches!(message, End)
    });
    let tree = Tree::start(Reader::new(), address, mailbox, |spec| spec).await;
    tree.fail().await;

    sends.store(true, Ordering::SeqCst);
    tree.send([Note(1)]);
    sends.store(false, Ordering::SeqCst);
    assert_eq!(tree.address.len(), 2, "both wait for the restart");

    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "start#2"], "the next incarnation gets `End` first");
    let status = tree.handle.which_child("reader").await.unwrap();
    assert_eq!(status.lifecycle, verger::Lifecycle::Stopped, "it was final when it was received");
}
