//! What each strategy does when one of three children fails, as a timeline.
//!
//! Each tree runs under a paused clock, and its events are recorded. The example prints one line for each child, in which
//! a character is 100 ms.
//!
//! ```text
//! cargo run --example timelines
//! ```
//!
//! If there is a folder `book/src`, the example also writes the pictures of the book.

#![expect(clippy::print_stdout, reason = "it is what this is for")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use verger::status::EventKind;
use verger::{
    Backoff, Child, ChildSpec, Context, Exit, Lifecycle, Strategy, Supervisor, SupervisorBuilder,
    async_trait, child,
};

#[path = "timelines/picture.rs"]
mod picture;

const START: Duration = Duration::from_millis(300);
const STOP: Duration = Duration::from_millis(200);
const WORK: Duration = Duration::from_secs(1);

/// The states of one child, each with the time at which the child entered it.
struct Row {
    name: String,
    states: Vec<(Duration, Lifecycle)>,
}

/// The rows of one tree, in the order in which the children are declared.
struct Timeline {
    name: &'static str,
    title: String,
    length: Duration,
    rows: Vec<Row>,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut timelines = Vec::new();
    for (name, strategy) in [
        ("one_for_one", Strategy::OneForOne),
        ("one_for_all", Strategy::OneForAll),
        ("rest_for_one", Strategy::RestForOne),
    ] {
        let tree =
            app().strategy(strategy).child(steady("a")).child(fails("b", 1)).child(steady("c"));
        let title = format!("{name}: b fails after a second of work");
        timelines
            .push(record(name, title, &["a", "b", "c"], Duration::from_millis(4_500), tree).await?);
    }

    let inner = Supervisor::builder("inner").restarts(1, Duration::from_secs(60));
    let inner = inner.child(steady("b")).child(fails("c", 2));
    let tree = app().child(steady("a")).child(inner.into_child().backoff(wait()));
    let title = "escalation: c fails twice, and its supervisor allows one restart".to_owned();
    let names = ["a", "inner", "inner/b", "inner/c"];
    timelines.push(record("escalation", title, &names, Duration::from_millis(6_500), tree).await?);

    for timeline in &timelines {
        println!("{}", picture::text(timeline));
    }
    let book = Path::new("book/src");
    if book.is_dir() {
        picture::write(&book.join("designing"), &timelines)?;
    }
    Ok(())
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

fn wait() -> Backoff {
    Backoff::constant(Duration::from_secs(1))
}

/// A child that takes time to start and to stop. It fails until it has failed often enough, whatever becomes of its supervisor.
struct Part {
    failures: Arc<AtomicU32>,
}

#[async_trait]
impl Child for Part {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        sleep(START).await;
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let left = self.failures.load(Ordering::Relaxed);
        if left > 0 {
            self.failures.store(left - 1, Ordering::Relaxed);
            sleep(WORK).await;
            return Err("no luck".into());
        }
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        sleep(STOP).await;
        Ok(())
    }
}

fn steady(name: &str) -> ChildSpec {
    fails(name, 0)
}

fn fails(name: &str, failures: u32) -> ChildSpec {
    let failures = Arc::new(AtomicU32::new(failures));
    child(name, move || Part { failures: Arc::clone(&failures) }).backoff(wait())
}

/// Runs the tree for this long, and returns what its children did.
async fn record(
    name: &'static str,
    title: String,
    children: &[&str],
    length: Duration,
    tree: SupervisorBuilder,
) -> Result<Timeline, Box<dyn Error>> {
    let mut tree = tree.build()?;
    let mut events = tree.events();
    let handle = tree.start().await?;
    sleep(length).await; // and the start before it, so that the last state is known
    let mut rows: Vec<_> =
        children.iter().map(|name| Row { name: (*name).to_owned(), states: Vec::new() }).collect();
    let mut first = None;
    while let Some(event) = events.try_next() {
        let EventKind::Moved { to, .. } = event.kind else { continue };
        let at = event.at.duration_since(*first.get_or_insert(event.at))?;
        let path = event.path.as_str().trim_start_matches("app/");
        if let Some(row) = rows.iter_mut().find(|row| row.name == path) {
            row.states.push((at, to));
        }
    }
    handle.stop("it has been seen").await?;
    Ok(Timeline { name, title, length, rows })
}
