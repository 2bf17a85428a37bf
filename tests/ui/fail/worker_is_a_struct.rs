use verger::{Child, Context, Exit, Supervisor, async_trait, component, worker};

#[worker]
#[derive(Clone)]
struct Clock;

#[async_trait]
impl Child for Clock {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
