//! Tables of the chapters about mailboxes and questions.

mod while_down {
    use std::time::Duration;

    use verger::mailbox::{Address, AskError, Inbox, Mailbox, Reply, WhileDown};
    use verger::{Backoff, Context, Exit, Supervisor, mailbox, worker_with_mailbox};

    enum Message {
        Fail,
        WhoIsThere(Reply<String>),
    }

    async fn clerk(ctx: Context, mut inbox: Inbox<Message>) -> Exit {
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Fail => return Err("told to fail".into()),
                Message::WhoIsThere(reply) => {
                    reply.send(format!("{} {}", ctx.path().name(), ctx.incarnation()));
                }
            }
        }
        Ok(())
    }

    /// The answer to a question that is asked while the clerk is down.
    async fn told(while_down: impl FnOnce(Address<Message>) -> WhileDown<Message>) -> String {
        let (address, mailbox): (_, Mailbox<Message>) = mailbox();
        let (deputy, deputys) = verger::mailbox();
        let mailbox = mailbox.while_down(while_down(deputy));
        let app = Supervisor::builder("app")
            .defaults(|child| child.backoff(Backoff::constant(Duration::from_secs(1))))
            .child(worker_with_mailbox("clerk", mailbox, clerk))
            .child(worker_with_mailbox("deputy", deputys, clerk));
        let app = app.build().unwrap().start().await.unwrap();
        address.try_send(Message::Fail).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;

        let answer = address.ask(Message::WhoIsThere).await;
        app.stop("it has been told").await.unwrap();
        answer.unwrap_or_else(|error: AskError| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn while_down_decides_about_messages() {
        assert_eq!(told(|_| WhileDown::Stash).await, "clerk 2");

        let undelivered = "the question to `app/clerk` was not delivered: dropped_while_down";
        assert_eq!(told(|_| WhileDown::Drop).await, undelivered);
        assert_eq!(told(|_| WhileDown::DeadLetter).await, undelivered);

        let closed = WhileDown::reply(|message| {
            if let Message::WhoIsThere(reply) = message {
                reply.send("nobody".to_owned());
            }
        });
        assert_eq!(told(|_| closed).await, "nobody");

        assert_eq!(told(WhileDown::Forward).await, "deputy 1");
    }
}

mod final_message {
    use verger::mailbox::Inbox;
    use verger::{Context, Exit, Supervisor, mailbox, worker_with_mailbox};

    #[derive(PartialEq)]
    enum Message {
        Work,
        Leave,
    }

    async fn guest(_ctx: Context, mut inbox: Inbox<Message>) -> Exit {
        while let Some(message) = inbox.recv().await {
            if message == Message::Leave {
                return Err("and it isn't even well".into());
            }
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_message_ends_the_restarts() -> Result<(), Box<dyn std::error::Error>> {
        let (address, mailbox) = mailbox();
        let mailbox = mailbox.final_message(|message| *message == Message::Leave);
        let app = Supervisor::builder("app").child(worker_with_mailbox("guest", mailbox, guest));
        let app = app.build()?.start().await?;

        address.send(Message::Work).await?;
        address.send(Message::Leave).await?;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;

        assert_eq!(app.which_child("guest").await?.incarnation, 1);
        assert!(address.is_closed());
        app.stop("the listing is over").await?;
        Ok(())
    }
}

mod group {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use verger::mailbox::Inbox;
    use verger::{Backoff, Context, Exit, Strategy, Supervisor};
    use verger::{mailbox, worker, worker_with_mailbox};

    type Read = Arc<Mutex<Vec<(u32, u32)>>>;

    /// A second for each message.
    async fn writer(ctx: Context, mut inbox: Inbox<u32>, read: Read) -> Exit {
        while let Some(n) = inbox.recv().await {
            read.lock().unwrap().push((n, ctx.incarnation()));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    async fn database(ctx: Context) -> Exit {
        if ctx.incarnation() == 1 {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            return Err("connection lost".into());
        }
        ctx.cancelled().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_restart_keeps_the_queue() -> Result<(), Box<dyn std::error::Error>> {
        let read = Read::default();
        let (address, mailbox) = mailbox();
        let noted = Arc::clone(&read);
        let run = move |ctx, inbox| writer(ctx, inbox, Arc::clone(&noted));
        let app = Supervisor::builder("app")
            .strategy(Strategy::OneForAll)
            .defaults(|child| child.backoff(Backoff::constant(Duration::from_secs(1))))
            .child(worker("database", database))
            .child(worker_with_mailbox("writer", mailbox, run));
        let app = app.build()?.start().await?;
        for n in 1..=4 {
            address.send(n).await?;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;

        assert_eq!(*read.lock().unwrap(), [(1, 1), (2, 1), (3, 2), (4, 2)]);
        app.stop("the listing is over").await?;
        Ok(())
    }
}

mod questions {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};
    use verger::mailbox::{Inbox, Reply};
    use verger::{Context, Exit, Shutdown, Supervisor, mailbox, worker_with_mailbox};

    enum Message {
        Quick(Reply<u32>),
        Slow(Reply<u32>),
        Forget(Reply<u32>),
        Fail(Reply<u32>),
    }

    async fn oracle(ctx: Context, mut inbox: Inbox<Message>) -> Exit {
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Quick(reply) => reply.send(ctx.incarnation()),
                Message::Slow(reply) => {
                    sleep(Duration::from_secs(10)).await;
                    reply.send(ctx.incarnation());
                }
                Message::Forget(_reply) => {}
                Message::Fail(_reply) => return Err("told to fail".into()),
            }
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_fails_as_soon_as_no_answer_can_come()
    -> Result<(), Box<dyn std::error::Error>> {
        let (address, mailbox) = mailbox();
        let oracle = worker_with_mailbox("oracle", mailbox, oracle).shutdown(Shutdown::BrutalKill);
        let app = Supervisor::builder("app").child(oracle).build()?.start().await?;

        // It takes too long. The answer, when it comes, vanishes.
        let asked = Instant::now();
        let error = address.ask_within(Duration::from_secs(1), Message::Slow).await.unwrap_err();
        assert_eq!(error.to_string(), "`app/oracle` did not answer within 1s");
        assert_eq!(asked.elapsed(), Duration::from_secs(1));

        // It is read, and not answered.
        let no_reply =
            "`app/oracle` has read the question and dropped its `Reply` without an answer";
        assert_eq!(address.ask(Message::Forget).await.unwrap_err().to_string(), no_reply);

        // The child fails over the first; the second is answered by the next incarnation.
        let (first, second) = tokio::join!(address.ask(Message::Fail), address.ask(Message::Quick));
        assert_eq!(first.unwrap_err().to_string(), no_reply);
        assert_eq!(second?, 2);

        // The child is stopped while it has the first in hand, and without a grace.
        let stopping = async {
            sleep(Duration::from_secs(1)).await;
            app.stop("the listing is over").await
        };
        let (first, second, stopped) =
            tokio::join!(address.ask(Message::Slow), address.ask(Message::Quick), stopping);
        stopped?;
        assert_eq!(first.unwrap_err().to_string(), no_reply);
        let undelivered = "the question to `app/oracle` was not delivered: undelivered_at_stop";
        assert_eq!(second.unwrap_err().to_string(), undelivered);

        let closed = "the mailbox of `app/oracle` is closed: the child is stopping, or is down and will not be restarted";
        assert_eq!(address.ask(Message::Quick).await.unwrap_err().to_string(), closed);
        Ok(())
    }
}
