use verger::{Supervisor, worker};

#[worker]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

struct Context;

impl Context {
    async fn cancelled(&self) {}
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
