//! `on_child_failure` takes a method, a function or a closure, async or not.

use std::time::Duration;

use verger::policy::{ChildFailure, FailureDecision};
use verger::{
    Context, DynamicSupervisor, Exit, Lifecycle, Supervisor, SupervisorHandle, supervisor, worker,
};

#[worker(backoff(none))]
async fn broken(ctx: Context, runs: u32) -> Exit {
    if ctx.incarnation() <= runs {
        return Err("broken".into());
    }
    ctx.cancelled().await;
    Ok(())
}

#[supervisor(on_child_failure = Self::failed)]
struct Plain {
    #[child]
    child: verger::ChildSpec,
}

impl Plain {
    fn failed(failure: ChildFailure) -> bool {
        failure.attempt < 2
    }
}

#[derive(Supervisor)]
#[tree(on_child_failure = Self::failed, max_restarts = self.limit, period = "1s")]
struct Later<T: Clone + Send + Sync + 'static> {
    #[child]
    child: verger::ChildSpec,
    limit: u32,
    data: std::marker::PhantomData<T>,
}

impl<T: Clone + Send + Sync + 'static> Later<T> {
    async fn failed(failure: ChildFailure) -> Result<FailureDecision, String> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok((failure.attempt < 3).into())
    }
}

fn give_up(_: ChildFailure) -> FailureDecision {
    FailureDecision::give_up()
}

#[supervisor(on_child_failure = move |failure| failure.attempt < self.limit)]
struct App {
    #[supervisor]
    plain: Plain,
    #[supervisor]
    later: Later<u8>,
    #[child]
    child: verger::ChildSpec,
    #[dynamic(on_child_failure = give_up)]
    conns: DynamicSupervisor,
    limit: u32,
}

async fn incarnation(app: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = app.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App {
        plain: Plain { child: broken(9) },
        later: Later { child: broken(9), limit: 5, data: std::marker::PhantomData },
        child: broken(9),
        conns: DynamicSupervisor,
        limit: 4,
    };
    let app = app.builder().build().unwrap().start().await.unwrap();
    let conns = app.supervisor("conns").await.unwrap();
    conns.start_child(broken(9)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;

    assert_eq!(incarnation(&app, "plain/child").await, (Lifecycle::Errored, 2));
    assert_eq!(incarnation(&app, "later/child").await, (Lifecycle::Errored, 3));
    assert_eq!(incarnation(&app, "child").await, (Lifecycle::Errored, 4));
    assert_eq!(incarnation(&app, "conns/broken#1").await, (Lifecycle::Errored, 1));
    app.stop("done").await.unwrap();
}
