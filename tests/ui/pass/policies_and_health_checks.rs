//! A policy may come from a file, and a health check from code.

use std::time::Duration;

use verger::policy::RestartPolicy;
use verger::{ChildSpec, Context, HealthCheck, RestartType, supervisor, worker};

#[worker]
async fn mqtt(ctx: Context) {
    ctx.cancelled().await;
}

async fn answers(_ctx: Context) -> Result<(), &'static str> {
    Err("no answer")
}

#[supervisor(defaults(policy = RestartPolicy::new().failing_for(Duration::from_secs(600))))]
struct App {
    #[child(policy = self.policy.clone(), health_check = HealthCheck::new(answers).failures(1))]
    mqtt: ChildSpec,
    policy: RestartPolicy,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let policy = RestartPolicy::new().restart(RestartType::Transient).consecutive_restarts(3);
    let app = App { mqtt: mqtt(), policy };
    let tree = app.builder().build().unwrap().start().await.unwrap();

    let spec = tree.child_spec("mqtt").await.unwrap();
    assert_eq!(spec.restart, RestartType::Transient);
    assert_eq!(spec.consecutive_restarts, Some(3));
    assert_eq!(spec.failing_for, Some(Duration::from_secs(600)));

    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(tree.which_child("mqtt").await.unwrap().healthy, Some(false));
    tree.stop("the test is over").await.unwrap();
}
