//! The keys of the macros about a child's configuration.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use verger::{ChildSpec, Context, Exit, Lifecycle, SupervisorHandle, supervisor, worker};

use super::{apply, config, idle};
use crate::common::settle;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 100 }
    }
}

impl Settings {
    async fn check(new: Arc<Self>) -> Exit {
        if new.batch == 0 { Err("`batch` is zero".into()) } else { Ok(()) }
    }
}

/// The batch that each incarnation has started with.
type Batches = Arc<Mutex<Vec<(String, usize)>>>;

async fn read(ctx: &Context, batches: &Batches) -> Exit {
    let batch = ctx.config::<Settings>()?.get().batch;
    batches.lock().unwrap().push((ctx.path().as_str().to_owned(), batch));
    ctx.cancelled().await;
    Ok(())
}

#[derive(Clone)]
struct Writer {
    batches: Batches,
}

#[worker]
impl Writer {
    async fn run(&mut self, ctx: &Context) -> Exit {
        read(ctx, &self.batches).await
    }
}

#[worker(config = Settings, config_section = "storage")]
async fn reader(ctx: Context, batches: Batches) -> Exit {
    read(&ctx, &batches).await
}

#[supervisor]
struct App {
    #[child(config = Settings, validate = Settings::check, restart_on_change)]
    writer: Writer,
    #[child]
    reader: ChildSpec,
    #[child(config = Settings, start_when_configured)]
    importer: ChildSpec,
}

fn app(batches: &Batches) -> verger::Supervisor {
    let importer = verger::worker("importer", idle);
    let writer = Writer { batches: Arc::clone(batches) };
    App { writer, reader: reader(Arc::clone(batches)), importer }.builder().build().unwrap()
}

async fn start(batches: &Batches, text: &str) -> SupervisorHandle {
    let tree = app(batches).configured(&config(text)).await.unwrap().start().await.unwrap();
    settle().await;
    tree
}

fn taken(batches: &Batches) -> Vec<(String, usize)> {
    std::mem::take(&mut *batches.lock().unwrap())
}

fn batch(path: &str, batch: usize) -> (String, usize) {
    (path.to_owned(), batch)
}

#[tokio::test(start_paused = true)]
async fn children_of_the_macros_get_their_values_from_a_file() {
    let batches = Batches::default();
    let tree = start(&batches, "[writer.config]\nbatch = 7\n[storage.config]\nbatch = 8").await;
    assert_eq!(taken(&batches), [batch("app/writer", 7), batch("app/reader", 8)]);
    tree.stop("seen").await.unwrap();

    let tree = start(&batches, "").await;
    assert_eq!(taken(&batches), [batch("app/writer", 100), batch("app/reader", 100)]);
    tree.stop("seen").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn restart_on_change_restarts_the_child_with_the_new_value() {
    let batches = Batches::default();
    let tree = start(&batches, "[writer.config]\nbatch = 7").await;
    taken(&batches);
    apply(&tree, "[writer.config]\nbatch = 9\n[storage.config]\nbatch = 9").await;
    settle().await;
    assert_eq!(taken(&batches), [batch("app/writer", 9)], "the reader isn't restarted");
    tree.stop("seen").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn validate_refuses_a_value_before_the_start() {
    let text = config("[writer.config]\nbatch = 0");
    let refused = app(&Batches::default()).configured(&text).await.unwrap_err();
    assert_eq!(refused.to_string(), "refused by `app/writer` (app.toml:1): `batch` is zero");
}

#[tokio::test(start_paused = true)]
async fn start_when_configured_withholds_the_child_until_it_has_a_section() {
    let tree = start(&Batches::default(), "").await;
    let importer = tree.which_child("importer").await.unwrap();
    assert_eq!(importer.lifecycle, Lifecycle::Discovered);
    apply(&tree, "[importer.config]").await;
    let importer = tree.which_child("importer").await.unwrap();
    assert_eq!(importer.lifecycle, Lifecycle::Active);
    tree.stop("seen").await.unwrap();
}
