use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, jitter(additive_abs = 1)))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
