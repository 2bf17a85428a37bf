use verger::{Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

struct Context;

impl Context {
    async fn wait(&self) {}
}

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        ctx.wait().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
