//! The last log lines of each child, from this incarnation and from the one before.
//!
//! [`LogLines`] is a bounded store, which a layer of `tracing-subscriber` fills. A line belongs to the child in
//! whose span it was logged. A line of verger's own belongs to the child that it names. The lines that explain a
//! restart can be read in the program, wherever the log itself is written.
//!
//! ```
//! use std::time::Duration;
//!
//! use tracing::info;
//! use tracing_subscriber::layer::SubscriberExt;
//! use verger::log_lines::LogLines;
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! async fn db(ctx: Context) -> Exit {
//!     info!(attempt = ctx.incarnation(), "connecting");
//!     if ctx.incarnation() == 1 {
//!         return Err("no route to host".into());
//!     }
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lines = LogLines::new();
//! let subscriber = tracing_subscriber::registry().with(lines.layer());
//! // A program calls `init` of `tracing_subscriber` instead.
//! let _for_this_thread = tracing::subscriber::set_default(subscriber);
//!
//! let app = Supervisor::builder("app").child(worker("db", db)).build()?.start().await?;
//! tokio::time::sleep(Duration::from_secs(1)).await;
//!
//! let db = lines.of("app/db");
//! assert_eq!(db.incarnation, 2);
//! let messages = |lines: &[verger::log_lines::LogLine]| -> Vec<String> {
//!     lines.iter().map(|line| line.message.clone()).collect()
//! };
//! assert_eq!(messages(&db.previous), ["active", "connecting", "restarting"]);
//! assert_eq!(messages(&db.current), ["active", "connecting"]);
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which child a line belongs to
//!
//! * A line inside of a child's span belongs to that child. These are the lines of its task, of its helpers, and of
//!   each task that runs in its span through `tracing::Instrument`. Spans of the program may be in between. A span
//!   without a parent belongs to the child in whose span it begins.
//! * A line of verger that names a child belongs to it, such as `restarting child=app/db incarnation=1`. So do the lines
//!   of a supervisor, which are about itself.
//! * Lines of target `verger::console` aren't kept, because they contain the token of a console.
//! * All other lines aren't kept. Each costs one look-up of the current span.
//!
//! # Which lines are kept
//!
//! Lines of level `INFO` and above, or as [`level`](LogLines::level) sets it. A filter of the whole subscriber, such as
//! an `EnvFilter` that isn't a filter of one layer, applies before. Where it hides spans of target
//! `verger::child`, as `RUST_LOG=warn` does, only the lines of verger itself are found; the directive
//! `verger::child=info` shows them.

// # Invariants
//
// 1. No number of lines, children or bytes makes the store exceed its limits.
// 2. No code of the user's runs under the lock: values are formatted to text before it is taken.
// 3. The layer doesn't panic. A value whose `Debug` or `Display` panics is shown as `(panicked)`.
// 4. What is kept is one line without invisible characters, whatever was logged.
//
// `layer` finds the child and writes the line, `line` is the value, `store` keeps lines within the limits. The
// module knows a child by the fields of its span, and knows no supervisor, handle or status.

mod layer;
mod line;
#[cfg(feature = "serde")]
mod serde;
mod store;

use std::fmt;
use std::sync::Arc;

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use self::layer::{LineLayer, keep};
pub use self::line::LogLine;
use self::store::Store;
use crate::clock::Clocks;
use crate::invisible::is_invisible;
use crate::path::Path;
use crate::policy::LogLevel;
use crate::sync::Mutex;

/// The last log lines of each child.
///
/// A clone shares the lines. See the [module](self) for an example. Set the limits before lines are logged. If
/// a limit is lowered later, lines that exceed it are removed when the next line is stored.
#[derive(Clone)]
pub struct LogLines {
    shared: Arc<Shared>,
    level: LogLevel,
}

struct Shared {
    store: Mutex<Store>,
    clocks: Clocks,
}

/// The last lines of one child, oldest first; see [`LogLines::of`].
///
/// The example of [`log_lines`](crate::log_lines) reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildLines {
    /// The newest incarnation that is known from a line, or 0.
    pub incarnation: u32,
    /// The lines of that incarnation.
    pub current: Vec<LogLine>,
    /// The lines of the last incarnation before it that has logged any.
    pub previous: Vec<LogLine>,
}

impl LogLines {
    /// Returns an empty store for 100 lines of each incarnation, 1,000 children and 16 MiB.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared { store: Mutex::default(), clocks: Clocks::read() };
        Self { shared: Arc::new(shared), level: LogLevel::Info }
    }

    /// Sets how many lines of an incarnation are kept, at least 1. Default: 100.
    #[must_use]
    pub fn max_lines(self, lines: usize) -> Self {
        self.shared.store.lock().limits.lines = lines.max(1);
        self
    }

    /// Sets how many children have lines, at least 1. Default: 1,000.
    ///
    /// Beyond that, the dynamic child, such as `conn#7`, with the oldest last line is removed, with all its lines; without
    /// dynamic children, the child with the oldest last line.
    #[must_use]
    pub fn max_children(self, children: usize) -> Self {
        self.shared.store.lock().limits.children = children.max(1);
        self
    }

    /// Sets how many bytes all lines take together. Default: 16 MiB.
    ///
    /// Beyond that, a child is removed as for [`max_children`](Self::max_children). One line takes at most
    /// 2 KiB of text, and about 150 bytes more.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.shared.store.lock().limits.bytes = bytes;
        self
    }

    /// Sets the least severe level of lines that are kept. Default: [`LogLevel::Info`].
    ///
    /// Call it before [`layer`](Self::layer). Lines that no other layer enables are formatted for this one alone.
    #[must_use]
    pub fn level(mut self, level: LogLevel) -> Self {
        self.level = level;
        self
    }

    /// Returns the layer that stores lines here.
    ///
    /// It works beside all other layers, and with a filter of its own, such as
    /// `lines.layer().with_filter(EnvFilter::new("info,sqlx=warn"))`. Such a filter must let spans of target
    /// `verger::child` pass, whose level is `INFO`.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        LineLayer { shared: Arc::clone(&self.shared) }.with_filter(keep(self.level))
    }

    /// Returns the lines of the child with this path. They are empty if nothing of it is kept.
    #[must_use]
    pub fn of(&self, child: impl AsRef<str>) -> ChildLines {
        let child = checked_path(child.as_ref().to_owned());
        let found = child.and_then(|child| self.shared.store.lock().of(&child));
        let Some((incarnation, current, previous)) = found else { return ChildLines::default() };
        ChildLines { incarnation, current: cloned(&current), previous: cloned(&previous) }
    }

    /// Returns the last lines of a child and of all children below it, oldest first, at most `max`.
    #[must_use]
    pub fn below(&self, path: impl AsRef<str>, max: usize) -> Vec<LogLine> {
        let found =
            self.shared.store.lock().newest(max, |child| child.is_at_or_below(path.as_ref()));
        cloned(&found)
    }

    /// Returns the last lines of all children, oldest first, at most `max`.
    #[must_use]
    pub fn last(&self, max: usize) -> Vec<LogLine> {
        let found = self.shared.store.lock().newest(max, |_| true);
        cloned(&found)
    }
}

impl Default for LogLines {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LogLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (children, bytes) = self.shared.store.lock().size();
        f.debug_struct("LogLines").field("children", &children).field("bytes", &bytes).finish()
    }
}

fn cloned(lines: &[Arc<LogLine>]) -> Vec<LogLine> {
    lines.iter().map(|line| LogLine::clone(line)).collect()
}

/// Returns a path, or `None` if the text isn't one: any program can log under verger's targets.
fn checked_path(text: String) -> Option<Path> {
    let is_valid = !text.contains(is_invisible) && !text.split('/').any(str::is_empty);
    is_valid.then(|| Path::from_text(text))
}

#[cfg(all(test, not(verger_loom)))]
mod tests;
