use verger::{Context, Supervisor, worker};

#[worker(on_exhausted(pause = "15s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
