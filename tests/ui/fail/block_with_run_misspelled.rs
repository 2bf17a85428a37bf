use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    async fn rum(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
