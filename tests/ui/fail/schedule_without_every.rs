use verger::{Supervisor, worker};

#[worker(schedule = |it| it.fail_after(3))]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
