//! What can be seen of a running tree: as text, as JSON, and as it changes.

mod common;

use std::time::Duration;

use tokio::time::sleep;
use verger::{
    Backoff, Context, DynamicSupervisor, Exit, OnExhausted, RestartType, Strategy, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker,
};

use self::common::{End, NextStart, World, settle};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

async fn text(handle: &SupervisorHandle) -> Vec<String> {
    let text = handle.status().await.unwrap().to_string();
    println!("{text}\n");
    text.lines().map(str::to_owned).collect()
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").defaults(|child| child.backoff(Backoff::constant(secs(5))))
}

/// A worker that says `status` of itself.
fn says(name: &str, status: &'static str) -> verger::ChildSpec {
    worker(name, move |ctx: Context| async move {
        ctx.set_status(status);
        ctx.cancelled().await;
        Exit::Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_told_in_one_line_for_each_child() {
    let world = World::new();
    let ingest = Supervisor::builder("ingest")
        .strategy(Strategy::RestForOne)
        .restarts(5, secs(10))
        .child(world.child("mqtt"))
        .child(world.child("writer"));
    let app = app()
        .child(says("db", "pool 8/10"))
        .child(world.child("http").restart(RestartType::Transient))
        .child(ingest)
        .child(DynamicSupervisor::builder("conns").unlimited_restarts());
    let app = start(app).await;
    app.supervisor("conns").await.unwrap().start_child(world.child("conn")).await.unwrap();
    app.supervisor("conns").await.unwrap().start_child(world.child("conn")).await.unwrap();
    sleep(secs(8100)).await;
    text(&app).await;

    // trouble
    world.next_starts("mqtt", [NextStart::Error; 4]);
    world.end("mqtt", End::Error).await;
    sleep(secs(15) + Duration::from_millis(800)).await;
    text(&app).await;
    text(&app.supervisor("ingest").await.unwrap()).await;
    app.terminate_child("ingest").await.unwrap();
    world.end("http", End::Normal).await;
    sleep(secs(3)).await;
    text(&app).await;
    panic!();
}

#[tokio::test(start_paused = true)]
async fn parked() {
    let world = World::new();
    let app = app()
        .restarts(1, secs(90))
        .on_exhausted(OnExhausted::Park)
        .strategy(Strategy::RestForOne)
        .child(world.child("a"))
        .child(world.child("b"))
        .child(world.child("c"))
        .child(world.child("d").requires("c"));
    let app = start(app).await;
    world.end("b", End::Panic).await;
    text(&app).await;
    sleep(secs(5)).await;
    settle().await;
    world.end("b", End::Error).await;
    text(&app).await;
    panic!();
}
