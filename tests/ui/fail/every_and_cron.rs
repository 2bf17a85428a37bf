use verger::{Supervisor, worker};

#[worker(every = "10s", cron = "30 4 * * *")]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
