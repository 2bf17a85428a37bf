//! The tracing span that a child is polled in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::log::register_second_subscriber;
use tracing::span::Id;
use tracing::subscriber::set_default;
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use verger::{Backoff, Context, Supervisor, worker};

/// The transitions of children's spans, in order.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<&'static str>>>);

impl Spans {
    fn push(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn seen(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_enter(&self, _id: &Id, _ctx: LayerContext<'_, S>) {
        self.push("enter");
    }

    fn on_exit(&self, _id: &Id, _ctx: LayerContext<'_, S>) {
        self.push("exit");
    }

    fn on_close(&self, _id: Id, _ctx: LayerContext<'_, S>) {
        self.push("close");
    }
}

#[tokio::test(start_paused = true)]
async fn a_childs_span_is_entered_for_each_poll_and_closed_at_its_exit_even_if_its_context_is_kept()
{
    let spans = Spans::default();
    let _reading = set_default(tracing_subscriber::registry().with(spans.clone()));
    register_second_subscriber();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let child = worker("child", move |ctx: Context| {
        keep.lock().unwrap().push(ctx.clone());
        async move {
            if ctx.incarnation() == 1 {
                tokio::task::yield_now().await;
                return Err(std::io::Error::other("the first time"));
            }
            ctx.cancelled().await;
            Ok(())
        }
    });
    let app = Supervisor::builder("app").child(child.backoff(Backoff::none())).build().unwrap();

    let tree = app.start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(spans.seen(), ["enter", "exit", "enter", "exit", "close", "enter", "exit"]);

    tree.stop("over").await.unwrap();
    assert_eq!(spans.seen(), ["enter", "exit", "close"]);
    assert_eq!(kept.lock().unwrap().len(), 2);
}
