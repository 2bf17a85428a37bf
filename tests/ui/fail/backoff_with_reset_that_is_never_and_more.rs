use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, reset = "never", reset_after = "1m"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
