//! A worker function with a schedule is called for each run, with clones of its arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use verger::periodic::{Every, Overrun, RunContext};
use verger::service::Service;
use verger::{ChildSpec, Context, Exit, RestartType, Supervisor, supervisor, worker};

const PERIOD: Duration = Duration::from_secs(10);

fn patient<F>(every: Every<F>) -> Every<F> {
    every.overrun(Overrun::Queue)
}

#[worker(every = "10s")]
async fn counted(run: RunContext, count: Arc<AtomicU32>) {
    assert_eq!(run.path().as_str(), "app/counted");
    count.fetch_add(1, Ordering::Relaxed);
}

#[worker(every = PERIOD, schedule = patient, restart = "transient", name = "renamed")]
async fn without_context() -> Exit {
    Ok(())
}

#[worker(every = "500ms", schedule = |it| it.fixed_delay().limit_run(PERIOD).fail_after(3))]
async fn with_service(ctx: Context, pool: Service<String>, more: u8) -> Exit {
    drop((ctx, pool, more));
    Ok(())
}

#[supervisor]
struct App {
    #[child]
    counted: ChildSpec,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    tokio::time::pause();
    let count = Arc::new(AtomicU32::new(0));
    let app = App { counted: counted(Arc::clone(&count)) };
    let app = app.builder().child(without_context()).build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(count.load(Ordering::Relaxed), 3);

    let plan = async |name| app.which_child(name).await.unwrap().schedule.unwrap().plan.to_string();
    assert_eq!(plan("counted").await, "every 10s");
    let renamed = app.child_spec("renamed").await.unwrap();
    assert_eq!(renamed.restart, RestartType::Transient);
    app.stop("done").await.unwrap();

    let other = Supervisor::builder("other").child(with_service(1)).build();
    assert!(other.is_ok());
}
