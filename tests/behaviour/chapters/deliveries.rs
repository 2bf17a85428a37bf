//! Figures of the chapters about deliveries, effects and dead letters.

mod outage {
    use std::time::Duration;

    use verger::dead_letter::{DeadLetterReason, DeadLetterStore};
    use verger::mailbox::Inbox;
    use verger::{Context, Exit, Readiness, Supervisor, mailbox, worker_with_mailbox};

    /// The database is there from the ninth incarnation on.
    fn connect(ctx: &Context) -> Exit {
        if ctx.incarnation() < 9 { Err("connection refused".into()) } else { Ok(()) }
    }

    async fn writer(ctx: Context, mut inbox: Inbox<u32>, connects_first: bool) -> Exit {
        if connects_first {
            connect(&ctx)?;
        }
        ctx.ready();
        while let Some(row) = inbox.deliver().await {
            connect(&ctx)?;
            row.ack();
        }
        Ok(())
    }

    /// How many of ten rows are taken for poison.
    async fn poisoned(connects_first: bool) -> u64 {
        let (address, mailbox) = mailbox();
        let run = move |ctx, inbox| writer(ctx, inbox, connects_first);
        let writer = worker_with_mailbox("writer", mailbox, run).readiness(Readiness::Signal);
        let store = DeadLetterStore::default();
        let app = Supervisor::builder("app").dead_letter_store(&store).unlimited_restarts();
        let app = app.child(writer).build().unwrap().start().await.unwrap();
        (0..10).for_each(|row| address.try_send(row).unwrap());
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(address.is_empty());
        app.stop("it has been seen").await.unwrap();
        store.counts().of(DeadLetterReason::Poison)
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_costs_no_attempts_if_the_child_connects_first() {
        assert_eq!(poisoned(false).await, 1);
        assert_eq!(poisoned(true).await, 0);
    }
}

mod delay {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::time::Instant;
    use verger::mailbox::{Delay, Inbox};
    use verger::policy::{Jitter, Reset};
    use verger::{Backoff, Context, Exit, Supervisor, mailbox, worker_with_mailbox};

    /// When, in milliseconds, it is started, and when it is given message 1, over which it fails three
    /// times, and message 2, over which it fails once.
    async fn seen(delay: Delay) -> (Vec<u128>, Vec<u128>) {
        let (began, log) = (Instant::now(), Arc::new(Mutex::new((Vec::new(), Vec::new()))));
        let noted = Arc::clone(&log);
        let run = move |_ctx: Context, mut inbox: Inbox<u32>| {
            let log = Arc::clone(&noted);
            async move {
                let now = || began.elapsed().as_millis();
                log.lock().unwrap().0.push(now());
                while let Some(message) = inbox.deliver().await {
                    log.lock().unwrap().1.push(now());
                    if message.attempt() <= if *message == 1 { 3 } else { 1 } {
                        return Err("no luck".into());
                    }
                    message.ack();
                }
                Exit::Ok(())
            }
        };
        let (address, mailbox) = mailbox();
        let second = Duration::from_secs(1);
        let backoff =
            Backoff::exponential(second, 60 * second).jitter(Jitter::None).reset(Reset::OnAck);
        let child = worker_with_mailbox("child", mailbox.delay(delay), run).backoff(backoff);
        let app = Supervisor::builder("app").unlimited_restarts().child(child);
        let app = app.build().unwrap().start().await.unwrap();
        tokio::task::yield_now().await;
        address.send(1).await.unwrap();
        address.send(2).await.unwrap();
        tokio::time::sleep(60 * second).await;
        app.stop("it has been seen").await.unwrap();
        let log = log.lock().unwrap();
        log.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn delays_of_messages_leave_the_child_running() {
        let (starts, messages) = seen(Delay::Child).await;
        assert_eq!(starts, [0, 1000, 3050, 7100, 8150]);
        assert_eq!(messages, [0, 1050, 3100, 7150, 7150, 8200]);

        let (starts, messages) = seen(Delay::Delivery).await;
        assert_eq!(starts, [0, 0, 1000, 3000, 7000]);
        assert_eq!(messages, [0, 1000, 3000, 7000, 7000, 8000]);
    }
}

mod first_answer {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use verger::mailbox::{AskError, Inbox, Reply};
    use verger::{Context, Exit, Supervisor, mailbox, worker_with_mailbox};

    #[derive(Clone, Copy)]
    enum First {
        Answer,
        Ack,
    }

    /// What the asker is told, and how often the work was done, if the child dies in between.
    async fn asked(first: First) -> (Result<u32, AskError>, u32) {
        let work: Arc<AtomicU32> = Arc::default();
        let worked = Arc::clone(&work);
        let run = move |ctx: Context, mut inbox: Inbox<Reply<u32>>| {
            let worked = Arc::clone(&worked);
            let dies_once = move || if ctx.incarnation() == 1 { Err("power cut") } else { Ok(()) };
            async move {
                while let Some(question) = inbox.deliver().await {
                    worked.fetch_add(1, Ordering::Relaxed);
                    match first {
                        First::Answer => {
                            question.send(42);
                            dies_once()?;
                            question.ack();
                        }
                        First::Ack => {
                            let reply = question.ack();
                            dies_once()?;
                            reply.send(42);
                        }
                    }
                }
                Exit::Ok(())
            }
        };
        let (address, mailbox) = mailbox();
        let app = Supervisor::builder("app").child(worker_with_mailbox("oracle", mailbox, run));
        let app = app.build().unwrap().start().await.unwrap();
        let answer = address.ask(|reply| reply).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        app.stop("it has been seen").await.unwrap();
        (answer, work.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn the_order_of_answer_and_acknowledgement_matters() {
        assert_eq!(asked(First::Answer).await, (Ok(42), 2));

        let (answer, worked) = asked(First::Ack).await;
        assert!(matches!(answer, Err(AskError::NoReply { .. })));
        assert_eq!(worked, 1);
    }
}

mod room {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};
    use verger::mailbox::Inbox;
    use verger::{Context, Exit, Supervisor, mailbox_with_capacity, worker_with_mailbox};

    async fn slow(_ctx: Context, mut inbox: Inbox<u32>) -> Exit {
        while let Some(first) = inbox.deliver().await {
            let second = inbox.try_deliver();
            sleep(Duration::from_secs(1)).await;
            for message in [Some(first), second].into_iter().flatten() {
                message.ack();
            }
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_hand_occupies_room() -> Result<(), Box<dyn std::error::Error>> {
        let (address, mailbox) = mailbox_with_capacity(2);
        let app = Supervisor::builder("app").child(worker_with_mailbox("slow", mailbox, slow));
        let app = app.build()?.start().await?;
        sleep(Duration::from_millis(1)).await;
        address.send(1).await?;
        address.send(2).await?;
        sleep(Duration::from_millis(1)).await;

        assert_eq!(address.len(), 2, "both are in hand");
        assert!(address.try_send(3).is_err());
        let began = Instant::now();
        address.send(3).await?;
        assert_eq!(
            began.elapsed(),
            Duration::from_millis(999),
            "until the first two are acknowledged"
        );
        app.stop("the listing is over").await?;
        Ok(())
    }
}

mod account {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use verger::dead_letter::{DeadLetterReason, DeadLetterStore};
    use verger::mailbox::{Inbox, Mailbox, Overflow};
    use verger::{Context, Exit, Shutdown, Supervisor, mailbox_with_capacity, worker_with_mailbox};

    /// A second for each; every tenth is one too many.
    async fn worker(_ctx: Context, mut inbox: Inbox<u64>, handled: Arc<AtomicU64>) -> Exit {
        while let Some(message) = inbox.deliver().await {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if *message % 10 == 0 {
                return Err("one too many".into());
            }
            handled.fetch_add(1, Ordering::Relaxed);
            message.ack();
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_account_of_a_mailbox_balances() -> Result<(), Box<dyn std::error::Error>> {
        let (address, mailbox): (_, Mailbox<u64>) = mailbox_with_capacity(50);
        let mailbox = mailbox.overflow(Overflow::DropOldest).max_attempts(2);
        let (store, handled) = (DeadLetterStore::default(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&handled);
        let run = move |ctx, inbox| worker(ctx, inbox, Arc::clone(&count));
        let worker = worker_with_mailbox("worker", mailbox, run).shutdown(Shutdown::BrutalKill);
        let app = Supervisor::builder("app").dead_letter_store(&store).unlimited_restarts();
        let app = app.child(worker).build()?.start().await?;
        let account = || {
            let there = u64::try_from(address.len()).unwrap();
            (handled.load(Ordering::Relaxed), store.counts().total, there)
        };

        let mut sent = 0;
        for _ in 0..60 {
            for _ in 0..2 {
                sent += 1;
                address.try_send(sent)?;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (handled, letters, there) = account();
            assert_eq!(sent, handled + letters + there);
        }

        app.stop("out of office").await?;
        let (handled, letters, there) = account();
        assert_eq!((sent, there), (120, 0));
        assert_eq!(sent, handled + letters);
        for reason in [DeadLetterReason::Poison, DeadLetterReason::UndeliveredAtStop] {
            assert!(store.counts().of(reason) > 0);
        }
        Ok(())
    }
}
