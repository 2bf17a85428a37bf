use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) -> u32 {
        ctx.cancelled().await;
        5
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
