//! The span of each message, event and request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::log::register_second_subscriber;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Instrument, Subscriber, debug};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use verger::bus::Request;
use verger::mailbox::Inbox;
use verger::{Context, Exit, Supervisor, mailbox, worker, worker_with_mailbox};

/// What has become of the spans of messages.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    open: usize,
    most_open: usize,
    closed: usize,
    /// How many spans have a parent.
    nested: usize,
    /// The most spans around a line, its own included.
    deepest: usize,
    /// How often a span of this name was followed.
    followed: BTreeMap<&'static str, usize>,
    /// How many spans have these fields.
    fields: BTreeMap<String, usize>,
    /// The spans that lines were logged in.
    lines: BTreeMap<String, usize>,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: LayerContext<'_, S>) {
        if attributes.metadata().target() != "verger::message" {
            return;
        }
        let mut seen = self.0.lock().unwrap();
        seen.open += 1;
        seen.most_open = seen.most_open.max(seen.open);
        seen.nested += usize::from(ctx.span(id).unwrap().parent().is_some());
        let mut fields = String::new();
        attributes.record(&mut Fields(&mut fields));
        *seen.fields.entry(fields.trim_end().to_owned()).or_default() += 1;
    }

    fn on_follows_from(&self, _: &Id, follows: &Id, ctx: LayerContext<'_, S>) {
        let name = ctx.span(follows).unwrap().name();
        *self.0.lock().unwrap().followed.entry(name).or_default() += 1;
    }

    fn on_event(&self, event: &tracing::Event<'_>, ctx: LayerContext<'_, S>) {
        if event.metadata().target() == "handled" {
            let scope: Vec<_> = ctx.event_scope(event).unwrap().map(|span| span.name()).collect();
            let mut seen = self.0.lock().unwrap();
            seen.deepest = seen.deepest.max(scope.len());
            *seen.lines.entry(scope.join("<")).or_default() += 1;
        }
    }

    fn on_close(&self, id: Id, ctx: LayerContext<'_, S>) {
        if ctx.span(&id).unwrap().metadata().target() == "verger::message" {
            let mut seen = self.0.lock().unwrap();
            seen.open -= 1;
            seen.closed += 1;
        }
    }
}

impl Spans {
    fn set(level: LevelFilter) -> (Self, DefaultGuard) {
        let spans = Self::default();
        let layer = spans.clone().with_filter(level);
        let guard = set_default(tracing_subscriber::registry().with(layer));
        register_second_subscriber();
        (spans, guard)
    }
}

const MESSAGES: u32 = 10_000;

async fn count(_ctx: Context, mut inbox: Inbox<Option<u32>>) -> Exit {
    while let Some(message) = inbox.recv().await {
        let span = inbox.span();
        let handling = async {
            debug!(target: "handled", ?message);
            tokio::task::yield_now().await;
        };
        handling.instrument(span).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_message_of_a_mailbox_has_a_span_without_a_parent_and_all_are_closed() {
    let (spans, _set) = Spans::set(LevelFilter::DEBUG);
    let (address, mailbox) = mailbox();
    let count = worker_with_mailbox("count", mailbox, count);
    let tree = Supervisor::builder("app").child(count).build().unwrap().start().await.unwrap();
    for n in 0..MESSAGES {
        address.send(Some(n)).await.unwrap();
    }
    tree.stop("over").await.unwrap();

    let seen = spans.0.lock().unwrap();
    assert_eq!((seen.closed, seen.open, seen.most_open), (10_000, 0, 1));
    assert_eq!((seen.nested, seen.deepest), (0, 1));
    let fields = "child=app/count incarnation=1 event_type=\"Option<u32>\"".to_owned();
    assert_eq!(seen.fields, BTreeMap::from([(fields, 10_000)]));
    assert_eq!(seen.followed, BTreeMap::from([("child", 10_000)]));
    assert_eq!(seen.lines, BTreeMap::from([("message".to_owned(), 10_000)]));
}

struct Ordered;
struct Price;

impl Request for Price {
    type Reply = u32;
}

/// Logs when it is dropped.
struct Noticed;

impl Drop for Noticed {
    fn drop(&mut self) {
        debug!(target: "handled", "dropped");
    }
}

async fn shop(ctx: Context) -> Exit {
    ctx.bus().on(async |_: Arc<Ordered>| {
        let _noticed = Noticed;
        tokio::task::yield_now().await;
    });
    ctx.bus().answer(|_: Arc<Price>| {
        debug!(target: "handled", "called");
        async { Ok::<_, std::io::Error>(7) }
    })?;
    ctx.cancelled().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_the_bus_runs_in_a_span_of_its_event() {
    let (spans, _set) = Spans::set(LevelFilter::DEBUG);
    let app = Supervisor::builder("app").child(worker("shop", shop));
    let tree = app.build().unwrap().start().await.unwrap();
    for n in 1..=MESSAGES / 2 {
        tree.bus().emit(Ordered);
        assert_eq!(tree.bus().call(Price, None).await.unwrap(), 7, "{n}");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    tree.stop("over").await.unwrap();

    let seen = spans.0.lock().unwrap();
    assert_eq!((seen.closed, seen.open), (10_000, 0));
    assert_eq!((seen.nested, seen.deepest), (0, 1));
    let fields = |event| format!("child=app/shop incarnation=1 event_type={event:?}");
    let expected = [(fields("Ordered"), 5_000), (fields("Price"), 5_000)];
    assert_eq!(seen.fields, BTreeMap::from(expected));
    assert_eq!(seen.followed, BTreeMap::from([("child", 10_000)]));
    assert_eq!(seen.lines, BTreeMap::from([("message".to_owned(), 10_000)]));
}

#[tokio::test(start_paused = true)]
async fn no_message_has_a_span_above_the_level_debug() {
    let (spans, _set) = Spans::set(LevelFilter::INFO);
    let (address, mailbox) = mailbox();
    let app = Supervisor::builder("app").child(worker("shop", shop));
    let app = app.child(worker_with_mailbox("count", mailbox, count));
    let tree = app.build().unwrap().start().await.unwrap();
    address.send(None).await.unwrap();
    assert_eq!(tree.bus().call(Price, None).await.unwrap(), 7);
    tree.stop("over").await.unwrap();
    let seen = spans.0.lock().unwrap();
    assert_eq!((seen.closed, seen.open, seen.followed.len()), (0, 0, 0));
}
