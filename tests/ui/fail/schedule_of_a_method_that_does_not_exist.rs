use verger::{Supervisor, worker};

#[worker(every = "10s", schedule = |it| it.fail_afte(3))]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
