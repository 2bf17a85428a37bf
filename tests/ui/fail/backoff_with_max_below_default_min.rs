use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, max = "100ms"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
