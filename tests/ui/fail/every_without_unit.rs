use verger::{Supervisor, worker};

#[worker(every = 10)]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
