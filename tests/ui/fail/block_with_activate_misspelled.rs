use verger::{Context, Exit, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    async fn activat(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
