//! Values that as many children provide or look up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use verger::{Context, DynamicSupervisor, Exit, Supervisor, once, worker};

use crate::measure::{Side, in_runtime, nanos};

/// What is provided.
#[derive(Clone)]
struct Pool(#[expect(dead_code, reason = "it is cloned")] Arc<str>);

/// What each child does.
#[derive(Clone, Copy)]
enum Step {
    Provide,
    LookUp,
}

impl Step {
    async fn run(self, ctx: &Context, number: u64) -> Duration {
        let (pool, name) = (Pool("pool".into()), number.to_string());
        let began = Instant::now();
        match self {
            Self::Provide => ctx.provide_named(&name, pool).expect("the name is free"),
            Self::LookUp => drop(ctx.service::<Pool>().await.expect("it is provided")),
        }
        began.elapsed()
    }
}

/// Nanoseconds for each of `n` values of one type that as many children provide, under names of their own.
pub(crate) fn provide(_: Side, n: u64) -> f64 {
    each(n, Step::Provide)
}

/// Nanoseconds for each lookup by one of `n` children. The value is that of a sibling of their supervisor.
pub(crate) fn service(_: Side, n: u64) -> f64 {
    each(n, Step::LookUp)
}

/// Returns how long a step takes in each of `n` children that all run.
fn each(n: u64, step: Step) -> f64 {
    let took = in_runtime(async move {
        let db = worker("db", async |ctx: Context| -> Exit {
            ctx.provide(Pool("pool".into()))?;
            ctx.cancelled().await;
            Ok(())
        });
        let users = DynamicSupervisor::builder("users");
        let app = Supervisor::builder("app").child(db).child(users).build().expect("a tree");
        let tree = app.start().await.expect("it starts");
        let users = tree.supervisor("users").await.expect("it runs");
        let (took, (done, mut all_done)) = (Arc::new(AtomicU64::new(0)), mpsc::channel::<()>(1));
        for number in 0..n {
            let (took, done) = (Arc::clone(&took), done.clone());
            let user = once("user", async move |ctx: Context| {
                let step = step.run(&ctx, number).await;
                took.fetch_add(step.as_nanos() as u64, Ordering::Relaxed);
                drop(done);
                ctx.cancelled().await;
            });
            users.start_child(user).await.expect("it starts");
        }
        drop(done);
        all_done.recv().await;
        Duration::from_nanos(took.load(Ordering::Relaxed))
    });
    nanos(took, n)
}
