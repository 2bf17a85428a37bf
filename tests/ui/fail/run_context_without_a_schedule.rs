use verger::periodic::RunContext;
use verger::{Supervisor, worker};

#[worker]
async fn work(run: RunContext) {
    drop(run);
}

fn main() {
    let _ = Supervisor::builder("app").child(work()).build();
}
