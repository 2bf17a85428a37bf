//! Spans of verger in OpenTelemetry. The book shows this file: *Tracing and OpenTelemetry*.

use std::io::IsTerminal as _;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};
use verger::mailbox::Inbox;
use verger::{Context, Exit, Supervisor, mailbox, worker_with_mailbox};

async fn orders(_ctx: Context, mut inbox: Inbox<u32>) -> Exit {
    while let Some(order) = inbox.recv().await {
        let span = inbox.span();
        place(order).instrument(span).await;
    }
    Ok(())
}

#[tracing::instrument]
async fn place(order: u32) {
    tracing::info!("placed");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In production, use the exporter of the crate `opentelemetry-otlp`, with a batch.
    let exporter = opentelemetry_stdout::SpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    let lines = tracing_subscriber::fmt::layer().with_ansi(std::io::stdout().is_terminal());
    tracing_subscriber::registry()
        .with(spans.with_filter(EnvFilter::new("info,verger::message=debug")))
        .with(lines.with_filter(EnvFilter::new("info")))
        .init();

    let (address, mailbox) = mailbox();
    let shop = Supervisor::builder("shop").child(worker_with_mailbox("orders", mailbox, orders));
    let tree = shop.build()?.start().await?;
    address.send(7).await?;
    tree.stop("the example is over").await?;
    // After the tree, so that the spans of the last messages are exported as well.
    provider.shutdown()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, Status};
    use opentelemetry_sdk::trace::InMemorySpanExporter;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_message_is_a_trace_of_its_own_that_links_to_its_child() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
        let spans = spans.with_filter(EnvFilter::new("info,verger::message=debug"));
        let _set = tracing_subscriber::registry().with(spans).set_default();
        let (address, mailbox) = mailbox();
        let shop = Supervisor::builder("shop");
        let shop = shop.child(worker_with_mailbox("orders", mailbox, orders));
        let tree = shop.build().unwrap().start().await.unwrap();
        for order in 0..3 {
            address.send(order).await.unwrap();
        }
        tree.stop("over").await.unwrap();

        let spans = exporter.get_finished_spans().unwrap();
        let named = |name: &str| -> Vec<_> { spans.iter().filter(|it| it.name == name).collect() };
        let [child] = named("child")[..] else { panic!("{spans:?}") };
        let (messages, places) = (named("message"), named("place"));
        assert_eq!((messages.len(), places.len(), spans.len()), (3, 3, 7));
        for (message, place) in messages.iter().zip(&places) {
            assert_eq!(message.parent_span_id, SpanId::INVALID);
            assert_ne!(message.span_context.trace_id(), child.span_context.trace_id());
            let links: Vec<_> = message.links.iter().map(|link| &link.span_context).collect();
            assert_eq!(links, [&child.span_context]);
            assert_eq!(place.parent_span_id, message.span_context.span_id());
            assert_eq!(message.status, Status::Unset);
        }
    }
}
