//! Each request is answered, or fails with a reason.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_by_the_current_incarnation() {
    let tree = Tree::new(|mailbox| mailbox).await;
    assert_eq!(text_of(tree.address.ask(|reply| Ask(1, reply)).await), "1 by 1");
}

#[tokio::test(start_paused = true)]
async fn a_request_fails_at_once_when_its_child_fails() {
    let (address, mailbox) = mailbox_with_capacity::<Reply<u32>>(10);
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
        let _question = inbox.recv().await;
        Err("it was too hard".into())
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();

    let began = Instant::now();
    let error = address.ask(|reply| reply).await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "`app/reader` has read the question and dropped its `Reply` without an answer"
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_fails_at_its_timeout_and_a_late_reply_is_discarded() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;

    let began = Instant::now();
    let error = tree.address.ask_within(ms(300), |reply| Ask(1, reply)).await.unwrap_err();

    assert_eq!(error.to_string(), "`app/reader` did not answer within 300ms");
    assert_eq!(began.elapsed(), ms(300));
    tree.pass(WAIT).await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1?#2"], "it is still read");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_not_sent_before_its_first_poll() {
    let tree = Tree::new(|mailbox| mailbox).await;
    drop(tree.address.ask(|reply| Ask(1, reply)));
    settle().await;
    assert_eq!(tree.log(), ["start#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_full_mailbox_fails_at_once() {
    let mut tree = Tree::with(Reader::new(), 1, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);

    let answer = tree.address.ask(|reply| Ask(2, reply)).await;

    assert_eq!(
        text_of(answer),
        "the mailbox of `app/reader` is full (capacity 1); wait for room with `send`, or raise the capacity"
    );
    assert!(tree.letters().is_empty(), "it was never sent");
}

#[tokio::test(start_paused = true)]
async fn a_request_fails_when_it_is_evicted() {
    let change =
        |mailbox: Mailbox<Message>| mailbox.overflow(verger::mailbox::Overflow::DropOldest);
    let tree = Tree::with(Reader::new(), 1, change, |spec| spec).await;
    tree.fail().await;

    let request = tokio::spawn({
        let address = tree.address.clone();
        async move { text_of(address.ask(|reply| Ask(1, reply)).await) }
    });
    settle().await;
    tree.send([Note(2)]);

    assert_eq!(
        request.await.unwrap(),
        "the question to `app/reader` was not delivered: stash_overflow"
    );
}

#[tokio::test(start_paused = true)]
async fn seed0_55_at_a_stop_messages_become_dead_letters_and_requests_fail() {
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;
    tree.send([Note(1)]);
    let request = tokio::spawn({
        let address = tree.address.clone();
        async move { text_of(address.ask(|reply| Ask(2, reply)).await) }
    });
    settle().await;

    tree.handle.stop("enough").await.unwrap();

    assert_eq!(tree.letters(), ["undelivered_at_stop: 1", "undelivered_at_stop: 2?"]);
    assert_eq!(
        request.await.unwrap(),
        "the question to `app/reader` was not delivered: undelivered_at_stop"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_knows_that_its_caller_is_gone() {
    let (address, mailbox) = mailbox_with_capacity::<Reply<u32>>(10);
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<Reply<u32>>| {
        let tx = tx.clone();
        async move {
            while let Some(reply) = inbox.recv().await {
                let _ = tx.send(reply.is_wanted());
                reply.send(1);
                reply.send(2);
                let _ = tx.send(reply.is_wanted());
            }
        }
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();

    assert_eq!(address.ask(|reply| reply).await, Ok(1), "the first answer counts");
    assert_eq!((rx.recv().await, rx.recv().await), (Some(true), Some(false)));
    let mut asking = Box::pin(address.ask(|reply| reply));
    assert!(futures_poll(&mut asking).is_none());
    drop(asking);
    assert_eq!(rx.recv().await, Some(false), "the asker is gone");
    tree.stop("enough").await.unwrap();
}

/// Polls a future once.
fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut cx) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// The thread that looks at questions is real, so the test gives it real time.
#[tokio::test]
async fn a_question_without_an_answer_is_shown_by_the_status_of_the_child_that_asks() {
    let (address, mailbox) = mailbox_with_capacity::<Reply<u32>>(10);
    let silent = worker_with_mailbox("silent", mailbox, async |ctx: Context, mut inbox| {
        let _question: Option<Reply<u32>> = inbox.recv().await;
        ctx.cancelled().await;
    });
    let asks = verger::worker_with("asks", address, async |ctx: Context, address| {
        let address: Address<Reply<u32>> = address;
        let _ = ctx.run_until_cancelled(address.ask(|reply| reply)).await;
    });
    let (started, handle) = tokio::sync::oneshot::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let app = verger::Application::new(app().child(silent).child(asks))
        .listen_to_signals(false)
        .on_start(|handle| drop(started.send(handle)))
        .stop_on(async { drop(stopped.await) });
    let running = tokio::spawn(app.run_to_end());
    let handle = handle.await.unwrap();
    let shown = async {
        loop {
            if let Ok(child) = handle.which_child("asks").await
                && let Some(awaits) = child.awaits
            {
                return awaits;
            }
            tokio::task::yield_now().await;
        }
    };
    let shown = tokio::time::timeout(secs(20), shown).await.expect("the status shows the question");
    assert_eq!(&*shown, "an answer of app/silent");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}
