use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, reset = "5m"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
