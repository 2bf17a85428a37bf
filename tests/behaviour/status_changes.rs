//! Listings of a tree that changes meanwhile, and streams of its changes.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use verger::policy::Start;
use verger::status::{Event, EventKind, StatusStream};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, RestartType, Supervisor, SupervisorBuilder,
    SupervisorHandle, worker,
};

use crate::common::{End, FakeChildren, settle};

/// The number of children in one page of a listing.
const PAGE: usize = 32;
/// The number of events a subscriber may lag behind.
const BEHIND: usize = 1_024;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn children_are_listed_in_start_order() {
    async fn names(handle: &SupervisorHandle) -> Vec<String> {
        let children = handle.children().await.unwrap();
        children.iter().map(|child| child.path.name().to_owned()).collect()
    }
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app")
        .start(Start::Concurrent)
        .child(fakes.child("z").requires("m"))
        .child(fakes.child("m"))
        .child(Supervisor::builder("k").child(fakes.child("x")))
        .child(fakes.child("b").restart(RestartType::Temporary));
    let app = start(app).await;
    assert_eq!(names(&app).await, ["m", "z", "k", "b"]);

    app.start_child(fakes.child("a")).await.unwrap();
    app.restart("m").await.unwrap();
    fakes.end("b", End::Normal).await;
    assert_eq!(names(&app).await, ["m", "z", "k", "a"], "a restart changes nothing");
    let status = app.status().await.unwrap();
    let seen = status.root.children.iter().map(|node| node.child.path.name());
    assert_eq!(seen.collect::<Vec<_>>(), ["m", "z", "k", "a"]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_child_is_omitted_when_a_sibling_is_removed_between_two_pages() {
    let children = 0..2 * PAGE + 1;
    let app = Supervisor::builder("app");
    let app = start(children.clone().fold(app, |app, i| app.child(idle(&format!("w{i}"))))).await;

    let mut asking = pin!(app.children());
    assert!(poll_once(asking.as_mut()).await.is_none(), "it asks for the first page");
    let last_of_page = format!("w{}", PAGE - 1);
    app.stop_child(&last_of_page).await.unwrap();
    app.otp().delete_child(&last_of_page).await.unwrap();
    let seen = asking.await.unwrap();

    let seen: Vec<_> = seen.iter().map(|child| child.path.name()).collect();
    assert_eq!(seen, children.map(|i| format!("w{i}")).collect::<Vec<_>>());
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_of_100_000_children_answers_calls_between_the_pages_of_a_snapshot() {
    const CHILDREN: usize = 100_000;
    let conns = DynamicSupervisor::builder("conns").build().unwrap().start().await.unwrap();
    let spec = idle("conn");
    for _ in 0..CHILDREN {
        conns.start_child(spec.clone()).await.unwrap();
    }

    let mut asking = pin!(conns.status());
    let mut answered = 0;
    let status = loop {
        match poll_once(asking.as_mut()).await {
            Some(status) => break status.unwrap(),
            None => assert_eq!(conns.otp().count_children().await.unwrap().active, 100_000),
        }
        answered += 1;
    };

    assert_eq!(status.root.children.len(), CHILDREN);
    assert_eq!(answered, CHILDREN.div_ceil(PAGE), "after each page");
    conns.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_arrive_in_order_and_are_numbered() {
    fn text_of(event: &Event) -> String {
        let what = match &event.kind {
            EventKind::Moved { from, to, after, reason, wait } => {
                let reason = reason.as_ref().map(|reason| format!(", {reason}"));
                let wait = wait.map(|(attempt, wait)| format!(", attempt {attempt} in {wait:?}"));
                let (reason, wait) = (reason.unwrap_or_default(), wait.unwrap_or_default());
                format!("{from} → {to} after {after:?}{reason}{wait}")
            }
            other => format!("{other:?}"),
        };
        format!("{} {}#{} {what}", event.seq, event.path, event.incarnation)
    }
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(secs(5));
    let mid = Supervisor::builder("mid").child(fakes.child("a").backoff(backoff));
    let app = start(Supervisor::builder("app").child(mid)).await;
    let (mut here, mut below) = (app.events(), app.supervisor("mid").await.unwrap().events());
    let began = app.status().await.unwrap().captured_at;
    sleep(secs(2)).await;
    fakes.end("a", End::Error).await;
    sleep(secs(5)).await;
    settle().await;
    app.stop_child("mid/a").await.unwrap();
    app.otp().delete_child("mid/a").await.unwrap();

    let events: Vec<_> = std::iter::from_fn(|| here.try_next()).collect();
    let expected = [
        "1 app/mid/a#1 active → errored after 2s, failed: a failed",
        "2 app/mid/a#1 errored → restarting after 0ns, attempt 1 in 5s",
        "3 app/mid/a#1 restarting → resolved after 5s",
        "4 app/mid/a#2 resolved → activating after 0ns",
        "5 app/mid/a#2 activating → active after 0ns",
        "6 app/mid/a#2 active → deactivating after 0ns",
        "7 app/mid/a#2 deactivating → stopped after 0ns, shut down",
        "8 app/mid/a#2 Removed",
    ];
    assert_eq!(events.iter().map(text_of).collect::<Vec<_>>(), expected);
    let at: Vec<_> = events.iter().map(|event| event.at.duration_since(began).unwrap()).collect();
    assert_eq!(at, [2, 2, 7, 7, 7, 7, 7, 7].map(secs));
    let below: Vec<_> =
        std::iter::from_fn(|| below.try_next()).map(|event| text_of(&event)).collect();
    assert_eq!(below, expected, "a subscriber further down receives the same events");
    assert_eq!((here.missed(), app.status().await.unwrap().seq), (0, 8));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn serialised_events_and_dead_letters_have_every_time_in_milliseconds() {
    let fakes = FakeChildren::new();
    let flaky = fakes.child("a").backoff(Backoff::constant(secs(5)));
    let app = start(Supervisor::builder("app").restarts(1, secs(60)).child(flaky)).await;
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    let began = serde_json::to_value(app.status().await.unwrap()).unwrap()["captured_at_ms"]
        .as_u64()
        .unwrap();
    sleep(secs(2)).await;
    fakes.end("a", End::Error).await;
    let received: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
    let reason = serde_json::json!({ "kind": "failed", "message": "failed: a failed" });

    let expected = serde_json::json!([
        {
            "seq": 1, "at_ms": began + 2_000, "path": "app/a", "incarnation": 1, "event": "moved",
            "from": "active", "to": "errored", "after_ms": 2_000, "reason": reason, "wait": null,
        },
        {
            "seq": 2, "at_ms": began + 2_000, "path": "app/a", "incarnation": 1, "event": "moved",
            "from": "errored", "to": "restarting", "after_ms": 0, "reason": null,
            "wait": { "attempt": 1, "delay_ms": 5_000 },
        },
    ]);
    assert_eq!(serde_json::to_value(received).unwrap(), expected);

    sleep(secs(5)).await;
    settle().await;
    fakes.end("a", End::Error).await;
    let letter = letters.try_next().unwrap();
    let expected = serde_json::json!({
        "reason": "gave_up", "target": "app/a", "incarnation": 2, "error": reason,
        "event_type": null, "suppressed": false, "at_ms": began + 7_000,
    });
    assert_eq!(serde_json::to_value(letter).unwrap(), expected);
    app.wait().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_lagging_subscriber_learns_how_many_events_it_missed() {
    const CHILDREN: usize = 500;
    let conns = DynamicSupervisor::builder("conns").build().unwrap().start().await.unwrap();
    let mut events = conns.events();
    for _ in 0..CHILDREN {
        conns.start_child(idle("conn")).await.unwrap();
    }
    assert_eq!(events.missed(), 0, "nothing was read, so nothing was missed yet");

    let first = events.next().await.unwrap();
    // Each child becomes resolved, activating and active.
    let missed = (3 * CHILDREN - BEHIND) as u64;
    assert_eq!((events.missed(), first.seq), (missed, missed + 1));
    let rest = std::iter::from_fn(|| events.try_next()).map(|event| event.seq);
    assert_eq!(rest.collect::<Vec<_>>(), (missed + 2..=1_500).collect::<Vec<_>>());
    assert_eq!(events.missed(), missed, "from there on nothing is");
    conns.stop("done").await.unwrap();
}

/// Returns everything that is already available.
async fn drain(stream: &mut StatusStream) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    while let Ok(Some(change)) = timeout(secs(1), stream.next()).await {
        let state = change.lifecycle.map_or("gone".to_owned(), |state| state.to_string());
        changes.push((change.path.name().to_owned(), state));
    }
    changes
}

fn of<'a>(changes: &'a [(String, String)], child: &str) -> Vec<&'a str> {
    changes.iter().filter(|(name, _)| name == child).map(|(_, state)| &**state).collect()
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_receives_each_change_once_whenever_it_subscribes() {
    // The transitions of a child that fails and is restarted without a delay.
    let states = ["active", "errored", "resolved", "activating", "active"];
    let mut seen_at_once = BTreeSet::new();
    for steps in 0..30 {
        let fakes = FakeChildren::new();
        let mid = Supervisor::builder("mid").child(fakes.child("b")).child(fakes.child("c"));
        let app = Supervisor::builder("app")
            .defaults(|child| child.backoff(Backoff::none()))
            .child(fakes.child("a"))
            .child(mid.defaults(|child| child.backoff(Backoff::none())));
        let app = start(app).await;

        // The child fails when the subscription has reached this point.
        let mut subscribing = pin!(app.subscribe_status());
        let mut stream = None;
        for step in 0..60 {
            if step == steps {
                fakes.end_without_settling("b", End::Error);
            }
            if stream.is_none() {
                stream = poll_once(subscribing.as_mut()).await;
            }
            tokio::task::yield_now().await;
        }
        let mut stream = stream.expect("it takes fewer steps").unwrap();
        let changes = drain(&mut stream).await;

        for other in ["a", "mid", "c"] {
            assert_eq!(of(&changes, other), ["active"], "{other}, after {steps} steps");
        }
        let seen = of(&changes, "b");
        let from = states.len() - seen.len();
        assert_eq!(seen, states[from..], "after {steps} steps");
        seen_at_once.insert(from);
        assert_eq!(stream.missed(), 0);
        app.stop("done").await.unwrap();
    }
    assert!(seen_at_once.contains(&0), "some came before the failure");
    assert!(seen_at_once.contains(&4), "some came after it: {seen_at_once:?}");
}

#[tokio::test(start_paused = true)]
async fn a_child_added_later_is_reported_from_its_first_state_to_its_last() {
    let fakes = FakeChildren::new();
    let app = start(Supervisor::builder("app").child(fakes.child("a"))).await;
    let mut stream = app.subscribe_status().await.unwrap();
    app.start_child(fakes.child("b")).await.unwrap();
    app.stop_child("b").await.unwrap();
    app.otp().delete_child("b").await.unwrap();
    app.start_child(fakes.child("b")).await.unwrap();

    let changes = drain(&mut stream).await;
    assert_eq!(of(&changes, "a"), ["active"]);
    let first = ["resolved", "activating", "active", "deactivating", "stopped", "gone"];
    assert_eq!(of(&changes, "b"), [&first[..], &first[..3]].concat());
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_the_supervisor_even_if_its_handle_is_kept() {
    let app = start(Supervisor::builder("app").child(idle("a"))).await;
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    let mut changes = app.subscribe_status().await.unwrap();
    app.stop("done").await.unwrap();

    let last = timeout(secs(1), async {
        let mut last = String::new();
        while let Some(event) = events.next().await {
            if let EventKind::Moved { to, .. } = event.kind {
                last = to.to_string();
            }
        }
        assert!(letters.next().await.is_none());
        while changes.next().await.is_some() {}
        last
    });
    assert_eq!(last.await, Ok("stopped".to_owned()));
}
