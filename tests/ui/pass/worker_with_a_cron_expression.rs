//! A worker function with a cron expression is called at its times.

use std::time::Duration;

use verger::periodic::{Missed, RunContext};
use verger::{ChildSpec, supervisor, worker};

const DEADLINE: Duration = Duration::from_secs(3_600);

#[worker(
    cron = "30 4 * * *",
    schedule = |it| it.in_tz("Europe/Berlin").missed(Missed::OnceWithin(DEADLINE)),
    shutdown = "1s"
)]
async fn by_calendar(_: RunContext, table: String) {
    drop(table);
}

#[supervisor]
struct App {
    #[child]
    by_calendar: ChildSpec,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    let app = App { by_calendar: by_calendar("t".into()) }.builder();
    let app = app.build().unwrap().start().await.unwrap();
    let plan = app.which_child("by_calendar").await.unwrap().schedule.unwrap().plan;
    assert_eq!(&*plan, "30 4 * * * in Europe/Berlin");
    app.stop("done").await.unwrap();
}
