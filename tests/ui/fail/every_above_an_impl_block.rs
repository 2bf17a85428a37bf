use verger::{Supervisor, component, worker};

#[derive(Clone)]
struct Pool;

#[worker(every = "10s")]
impl Pool {
    async fn run(&self) {}
}

fn main() {
    let _ = Supervisor::builder("app").child(component("pool", Pool)).build();
}
