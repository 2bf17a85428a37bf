use verger::{Supervisor, worker};

#[worker(cron = 4)]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
