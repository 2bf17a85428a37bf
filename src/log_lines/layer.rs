//! The layer: finds the child of a line, and stores the line.

use std::fmt::{self, Debug};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope, SpanRef};

use super::line::{FieldReader, LogLine};
use super::store::Of;
use super::{Shared, checked_path};
use crate::clock::now;
use crate::path::Path;
use crate::policy::LogLevel;
use crate::subscriber::as_tracing;

/// The target of a child's span.
const CHILD: &str = "verger::child";

/// The target of the lines that contain the token of a console, which shows the lines that are kept.
const CONSOLE: &str = "verger::console";

/// The child and the incarnation whose lines a span contains. Extends the span in the registry.
#[derive(Clone)]
struct Owner {
    path: Path,
    incarnation: u32,
}

pub(super) struct LineLayer {
    pub(super) shared: Arc<Shared>,
}

impl<S> Layer<S> for LineLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let owner = if is_child_span(attributes.metadata()) {
            let owner = Owner::read(attributes);
            owner.inspect(|it| self.shared.store.lock().begin(&it.path, it.incarnation))
        } else if attributes.is_root() {
            ctx.lookup_current().and_then(|span| owner_of(span.scope()))
        } else {
            None
        };
        if let (Some(owner), Some(span)) = (owner, ctx.span(id)) {
            span.extensions_mut().replace(owner);
        }
    }

    fn on_follows_from(&self, span: &Id, follows: &Id, ctx: Context<'_, S>) {
        let (Some(span), Some(follows)) = (ctx.span(span), ctx.span(follows)) else { return };
        if owner_of(span.scope()).is_none()
            && let Some(owner) = owner_of(follows.scope())
        {
            span.extensions_mut().replace(owner);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == CONSOLE {
            return;
        }
        let is_own = names_a_child(metadata);
        let owner = (!is_own).then(|| ctx.event_scope(event)).flatten().and_then(owner_of);
        if owner.is_none() && !is_own {
            return;
        }
        let mut reader = FieldReader::new(is_own);
        event.record(&mut reader);
        let (path, of) = match owner {
            Some(Owner { path, incarnation }) => {
                (path, Of { incarnation: Some(incarnation), in_span: true })
            }
            None => {
                let named = reader.child.take();
                let Some(path) = named.and_then(checked_path) else { return };
                (path, Of { incarnation: reader.incarnation, in_span: false })
            }
        };
        let target = reader.target.take().map_or(metadata.target().into(), Into::into);
        let (message, fields) = reader.finish();
        let line = LogLine {
            at: self.shared.clocks.wall_clock(now()),
            level: level_of(*metadata.level()),
            target,
            path,
            incarnation: 0,
            message,
            fields,
        };
        self.shared.store.lock().push(line, of);
    }
}

fn is_child_span(metadata: &Metadata<'_>) -> bool {
    metadata.target() == CHILD && metadata.name() == "child"
}

/// Returns whether a line of verger says which child it is about.
fn names_a_child(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("verger::") && metadata.fields().field("child").is_some()
}

/// Returns the innermost owner among some spans, the innermost first.
fn owner_of<'a, R: LookupSpan<'a>>(mut spans: Scope<'a, R>) -> Option<Owner> {
    spans.find_map(|span: SpanRef<'a, R>| span.extensions().get::<Owner>().cloned())
}

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

impl Owner {
    fn read(attributes: &Attributes<'_>) -> Option<Self> {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        Some(Self { path: fields.path.and_then(checked_path)?, incarnation: fields.incarnation? })
    }
}

/// The fields of a child's span.
#[derive(Default)]
struct Fields {
    path: Option<String>,
    incarnation: Option<u32>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "child" {
            self.path = Some(fmt::format(format_args!("{value:?}")));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "incarnation" {
            self.incarnation = value.try_into().ok();
        }
    }
}

/// Returns a filter that keeps lines from a level up, and the spans of children, which are `INFO`.
pub(super) fn keep(level: LogLevel) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let level = LevelFilter::from_level(as_tracing(level));
    let most = level.max(LevelFilter::INFO);
    let keeps = move |metadata: &Metadata<'_>| {
        *metadata.level() <= level || metadata.target() == CHILD && *metadata.level() <= most
    };
    filter_fn(keeps).with_max_level_hint(most)
}
