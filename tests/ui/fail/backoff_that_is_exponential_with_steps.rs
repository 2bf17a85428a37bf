use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, steps = 5))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
