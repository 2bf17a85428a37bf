//! The incarnations of a failing child: never two at once, each a new value with the next number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{DAY, SECOND, app, fail, ms, pass, secs, seen};
use crate::common::{End, FakeChildren, settle, start};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use verger::mailbox::{Inbox, Reply};
use verger::policy::Jitter;
use verger::status::EventKind;
use verger::{
    Backoff, Child, ChildSpec, Context, ControlError, Exit, Lifecycle, async_trait, child,
    child_with_mailbox, mailbox,
};

#[tokio::test(start_paused = true)]
async fn seed0_2_there_is_never_more_than_one_live_child() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
        assert_eq!(tree.otp().count_children().await.unwrap().active, 0, "while it waits");
        pass(SECOND).await;
        assert_eq!(tree.otp().count_children().await.unwrap().active, 1);
    }
    assert_eq!(
        fakes.log().join(", "),
        "start a, end a, dead a, start a, end a, dead a, start a, end a, dead a, start a"
    );
}

/// A child that counts its constructions, activations and deactivations.
#[derive(Clone, Default)]
struct Counted(Arc<[AtomicU32; 3]>);

impl Counted {
    fn counts(&self) -> [u32; 3] {
        [0, 1, 2].map(|which| self.0[which].load(Ordering::Relaxed))
    }

    fn count(&self, which: usize) {
        self.0[which].fetch_add(1, Ordering::Relaxed);
    }

    fn child(&self) -> ChildSpec {
        let counted = self.clone();
        child("a", move || {
            counted.count(0);
            FailsOnce(counted.clone())
        })
    }
}

struct FailsOnce(Counted);

#[async_trait]
impl Child for FailsOnce {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        self.0.count(1);
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.0.count(2);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_4_a_crash_ends_the_incarnation_and_the_next_is_a_new_value() {
    let counted = Counted::default();
    let tree = start(app().child(counted.child().backoff(Backoff::constant(SECOND)))).await;
    settle().await;
    assert_eq!(counted.counts(), [1, 1, 1], "it was tidied up once, before any wait");
    pass(SECOND).await;
    assert_eq!(counted.counts(), [2, 2, 1], "and is not activated as what it was");
    tree.stop("enough").await.unwrap();
    assert_eq!(counted.counts(), [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn seed0_15_the_factory_is_called_once_for_each_incarnation() {
    let counted = Counted::default();
    let tree = start(app().child(counted.child().backoff(Backoff::none()))).await;
    settle().await;
    assert_eq!(counted.counts()[0], seen(&tree, "a").await.incarnation);
}

/// The name stays the same, and the incarnation number distinguishes runs.
#[tokio::test(start_paused = true)]
async fn seed0_11_incarnations_are_numbered_from_one() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("db").backoff(Backoff::constant(SECOND)))).await;
    let mut events = tree.events();
    for _ in 0..2 {
        fail(&tree, &fakes, "db").await;
    }
    tree.stop("enough").await.unwrap();
    let mut active = Vec::new();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Moved { to: Lifecycle::Active, .. }) {
            active.push(format!("{}-{}", event.path, event.incarnation));
        }
    }
    assert_eq!(active, ["app/db-2", "app/db-3"]);
}

/// A child always has a name, and it can be changed.
#[tokio::test(start_paused = true)]
async fn seed0_16_a_childs_name_is_part_of_its_path() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").named("db"))).await;
    assert_eq!(seen(&tree, "db").await.path.to_string(), "app/db");
    assert!(matches!(tree.which_child("a").await, Err(ControlError::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn kin_55_a_restart_increments_count_and_incarnation() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::none()))).await;
    let before = seen(&tree, "a").await;
    assert_eq!((before.restarts, before.incarnation), (0, 1));
    fakes.end("a", End::Error).await;
    let after = seen(&tree, "a").await;
    assert_eq!((after.restarts, after.incarnation), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn kin_60_four_failures_wait_twice_as_long_each_and_incarnations_never_overlap() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(200), secs(10)).jitter(Jitter::None);
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    for expected in [200, 400, 800, 1_600] {
        fakes.end("a", End::Error).await;
        pass(ms(expected - 1)).await;
        assert_eq!(tree.otp().count_children().await.unwrap().active, 0);
        pass(ms(1)).await;
        assert_eq!(tree.otp().count_children().await.unwrap().active, 1);
    }
}

/// A value that answers with its incarnation, and whose end waits for a permit.
struct SlowToEnd {
    inbox: Inbox<Query>,
    ends: Arc<Semaphore>,
}

enum Query {
    Incarnation(Reply<u32>),
    Fail,
}

#[async_trait]
impl Child for SlowToEnd {
    async fn run(&mut self, ctx: &Context) -> Exit {
        while let Some(query) = self.inbox.recv().await {
            match query {
                Query::Incarnation(reply) => reply.send(ctx.incarnation()),
                Query::Fail => return Err("it fails".into()),
            }
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.ends.acquire().await?.forget();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn kin_63_a_failure_is_recorded_when_the_child_has_exited() {
    let ends = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&ends);
    let (address, mailbox) = mailbox();
    let slow = child_with_mailbox("a", mailbox, move |inbox| SlowToEnd {
        inbox,
        ends: Arc::clone(&permits),
    });
    let tree = start(app().child(slow.backoff(Backoff::constant(SECOND)))).await;
    assert_eq!(address.ask(Query::Incarnation).await.unwrap(), 1);

    address.send(Query::Fail).await.unwrap();
    settle().await;
    let asked = tokio::spawn({
        let address = address.clone();
        async move { address.ask(Query::Incarnation).await }
    });
    pass(DAY).await;
    let called = Instant::now();
    let info = seen(&tree, "a").await;
    assert_eq!((info.incarnation, info.restarts, info.failures), (1, 0, 0), "still the old one");
    assert_eq!(tree.status().await.unwrap().root.children.len(), 1);
    assert_eq!(called.elapsed(), Duration::ZERO, "a query doesn't wait for the child");
    assert!(!asked.is_finished(), "the old child answers no more");

    ends.add_permits(1);
    settle().await;
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.failures), (Lifecycle::Restarting, 1));
    assert_eq!(info.next.unwrap().remaining, SECOND, "from the exit, and not from the failure");
    pass(SECOND + ms(50)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    assert_eq!(asked.await.unwrap().unwrap(), 2);
}
