//! The names of tasks, which tokio knows in programs that are built with `--cfg tokio_unstable` only.
//!
//! A binary of its own, because the flag rebuilds everything: `.ci/run task-names`.
#![cfg(tokio_unstable)]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use verger::task::TaskSupervisor;
use verger::{Context, Exit, HealthCheck, Supervisor, worker};

/// The names of all tasks, in the order of their starts.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Visit for &Names {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let name = format!("{value:?}");
        if field.name() == "task.name" && !name.is_empty() {
            self.0.lock().unwrap().push(name);
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Names {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: LayerContext<'_, S>) {
        if attributes.metadata().name() == "runtime.spawn" {
            attributes.record(&mut &*self);
        }
    }
}

async fn db(ctx: Context) -> Exit {
    ctx.spawn(async {}).await;
    ctx.children().start_child(worker("own", async |_| ())).await?;
    ctx.cancelled().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_task_is_named_by_the_path_of_its_child() {
    let names = Names::default();
    let _set = tracing::subscriber::set_default(tracing_subscriber::registry().with(names.clone()));
    let check = HealthCheck::new(async |_: Context| ()).every(Duration::from_secs(1));
    let tasks = TaskSupervisor::new("tasks");
    let storage = Supervisor::builder("storage").child(worker("db", db).health_check(check));
    let app = Supervisor::builder("app").child(storage).child(tasks.spec()).build().unwrap();

    let tree = app.start().await.unwrap();
    tasks.spawn_blocking("hash", || 1).await.unwrap();
    tree.stop("over").await.unwrap();

    let mut names = std::mem::take(&mut *names.0.lock().unwrap());
    names.sort();
    assert_eq!(
        names,
        [
            "app",
            "app/storage",
            "app/storage/db",
            "app/storage/db (health check)",
            "app/storage/db (helper)",
            "app/storage/db (own children)",
            "app/storage/db/own#1",
            "app/tasks",
            "app/tasks/hash#1",
            "app/tasks/hash#1",
        ]
    );
}
