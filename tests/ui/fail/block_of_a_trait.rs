use verger::{Child, Context, Exit, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Child for Clock {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
