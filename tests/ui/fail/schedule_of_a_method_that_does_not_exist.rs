use verger::{Supervisor, worker};

#[worker(every = "10s", schedule = |it| it.log_failure())]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
