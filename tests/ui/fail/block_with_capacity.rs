use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Writer;

#[worker(capacity = 50)]
impl Writer {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("writer", Writer)).build();
}
