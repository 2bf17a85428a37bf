use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, factor = -2.0))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
