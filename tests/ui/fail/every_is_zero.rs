use verger::{Supervisor, worker};

#[worker(every = "0s")]
async fn work() {}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
