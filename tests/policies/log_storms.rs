//! The log while everything fails: a bounded number of lines about each child, whatever it does.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use verger::{
    Backoff, Context, Exit, HealthCheck, Shutdown, Strategy, Supervisor, SupervisorBuilder, worker,
};

use crate::log::register_second_subscriber;

/// How often each line was logged, by level, message and the last name of its child.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<BTreeMap<String, usize>>>);

#[derive(Default)]
struct Text {
    message: String,
    name: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.message, "{value:?}").unwrap(),
            "child" | "supervisor" => {
                let path = format!("{value:?}");
                // The child comes after its supervisor.
                self.name = path.rsplit('/').next().unwrap().to_owned();
            }
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let Text { message, name } = text;
        // All of ten thousand children at once.
        let name = if name.starts_with("many") { "many" } else { &name };
        let line = format!("{} {message}: {name}", event.metadata().level());
        *self.0.lock().unwrap().entry(line).or_default() += 1;
    }
}

impl Lines {
    fn new() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let layer = lines.clone().with_filter(LevelFilter::INFO);
        let guard = set_default(tracing_subscriber::registry().with(layer));
        register_second_subscriber();
        (lines, guard)
    }

    /// Returns the counts since the last call.
    fn take(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().collect()
    }

    /// Fails unless these lines were logged since the last call, and no others.
    #[track_caller]
    fn assert_eq(&self, expected: &[(&str, usize)]) {
        let expected: Vec<_> = expected.iter().map(|&(line, n)| (line.to_owned(), n)).collect();
        assert_eq!(self.take(), expected);
    }
}

async fn fails(_: Context) -> Exit {
    Err("at once".into())
}

fn every(seconds: u64) -> Backoff {
    Backoff::constant(Duration::from_secs(seconds))
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").unlimited_restarts()
}

const ACTIVE: &str = "INFO active; no more are logged for a while";
const LAST: &str = "WARN restarting; no more are logged for a while";
const RESUMED: &str = "WARN restarting; some before were not logged";

#[tokio::test(start_paused = true)]
async fn ten_thousand_children_that_crash_in_a_loop_are_ten_lines_each_and_then_none() {
    let (lines, _set) = Lines::new();
    let often = Backoff::constant(Duration::from_millis(5_500));
    let many = |n| worker(format!("many{n}"), fails).backoff(often.clone());
    let tree = (0..10_000)
        .map(many)
        .fold(app(), SupervisorBuilder::child)
        .build()
        .unwrap()
        .start()
        .await
        .unwrap();

    // Eleven failures of each in a minute.
    sleep(Duration::from_secs(59)).await;
    lines.assert_eq(&[
        ("INFO active: app", 1),
        ("INFO active: many", 90_000),
        (&format!("{ACTIVE}: many"), 10_000),
        ("WARN restarting: many", 90_000),
        (&format!("{LAST}: many"), 10_000),
    ]);
    sleep(Duration::from_secs(6)).await;
    lines.assert_eq(&[]);
    drop(tree);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_five_minutes_ends_with_a_summary() {
    let (lines, _set) = Lines::new();
    let tree = app().child(worker("one", fails).backoff(every(1)));
    let _tree = tree.build().unwrap().start().await.unwrap();
    sleep(Duration::from_millis(9_500)).await;
    lines.assert_eq(&[
        ("INFO active: app", 1),
        ("INFO active: one", 9),
        (&format!("{ACTIVE}: one"), 1),
        ("WARN restarting: one", 9),
        (&format!("{LAST}: one"), 1),
    ]);
    sleep(Duration::from_secs(299)).await;
    lines.assert_eq(&[]);
    sleep(Duration::from_secs(1)).await;
    lines.assert_eq(&[
        ("INFO active; some before were not logged: one", 1),
        (&format!("{RESUMED}: one"), 1),
    ]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_nine_times_a_minute_is_always_logged() {
    let (lines, _set) = Lines::new();
    let tree = app().child(worker("one", fails).backoff(every(7)));
    let _tree = tree.build().unwrap().start().await.unwrap();
    sleep(Duration::from_secs(7 * 100 - 1)).await;
    let all = [("INFO active: app", 1), ("INFO active: one", 100), ("WARN restarting: one", 100)];
    lines.assert_eq(&all);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_restarts_all_the_time_is_ten_lines_for_each_child() {
    let (lines, _set) = Lines::new();
    let many = |n| worker(format!("many{n}"), async |ctx: Context| ctx.cancelled().await);
    let tree = app().strategy(Strategy::OneForAll);
    let tree = (0..100).map(many).fold(tree, SupervisorBuilder::child);
    let tree = tree.child(worker("one", fails).backoff(every(1)));
    let _tree = tree.build().unwrap().start().await.unwrap();
    sleep(Duration::from_secs(59)).await;
    lines.assert_eq(&[
        ("INFO active: app", 1),
        ("INFO active: many", 900),
        ("INFO active: one", 9),
        ("INFO active; no more are logged for a while: many", 100),
        ("INFO active; no more are logged for a while: one", 1),
        ("WARN restarting: one", 9),
        (&format!("{LAST}: one"), 1),
    ]);
}

/// A restarted supervisor keeps the counts, because they belong to the tree.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_gives_up_all_the_time_is_ten_lines_of_each_kind() {
    let (lines, _set) = Lines::new();
    let period = Duration::from_secs(60);
    let sub = Supervisor::builder("sub").restarts(1, period);
    let sub = sub.child(worker("one", fails).backoff(Backoff::none()));
    let tree = app().child(verger::ChildSpec::from(sub).backoff(every(1)));
    let _tree = tree.build().unwrap().start().await.unwrap();
    sleep(Duration::from_secs(59)).await;
    for (line, count) in lines.take() {
        assert!(count <= 10, "{line}: {count}");
    }
    sleep(Duration::from_secs(60)).await;
    lines.assert_eq(&[]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_killed_all_the_time_is_ten_lines() {
    let (lines, _set) = Lines::new();
    let deaf = worker("deaf", async |_| std::future::pending::<()>().await);
    let deaf = deaf.shutdown(Shutdown::Timeout(Duration::from_secs(1)));
    let tree = app().child(deaf).build().unwrap().start().await.unwrap();
    for _ in 0..30 {
        tree.restart("deaf").await.unwrap();
    }
    let killed: Vec<_> = lines.take().into_iter().filter(|it| it.0.contains("killed")).collect();
    let expected = [
        ("WARN killed: deaf".to_owned(), 9),
        ("WARN killed; no more are logged for a while: deaf".to_owned(), 1),
    ];
    assert_eq!(killed, expected);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_unhealthy_every_other_second_is_ten_lines_of_each_kind() {
    let (lines, _set) = Lines::new();
    let checks = AtomicU32::new(0);
    let check = HealthCheck::new(move |_: Context| {
        let is_well = checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        async move { if is_well { Ok(()) } else { Err("no ping") } }
    });
    let check = check.every(Duration::from_secs(1)).failures(1).successes(1);
    let flaps = worker("flaps", async |ctx: Context| ctx.cancelled().await).health_check(check);
    let _tree = app().child(flaps).build().unwrap().start().await.unwrap();
    sleep(Duration::from_secs(59)).await;
    lines.assert_eq(&[
        ("INFO active: app", 1),
        ("INFO active: flaps", 1),
        ("INFO healthy again: flaps", 9),
        ("INFO healthy again; no more are logged for a while: flaps", 1),
        ("WARN unhealthy: flaps", 9),
        ("WARN unhealthy; no more are logged for a while: flaps", 1),
    ]);
}
