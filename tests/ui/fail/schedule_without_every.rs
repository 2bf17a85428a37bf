use verger::{Supervisor, worker};

#[worker(schedule = |it| it.log_failures())]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
