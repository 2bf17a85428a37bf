use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Script;

#[worker(local)]
impl Script {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("script", Script)).build();
}
