use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, jitter(symmetric = 0.2)))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
