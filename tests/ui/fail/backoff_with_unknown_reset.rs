use verger::{Context, Supervisor, worker};

#[worker(backoff(exponential, reset = ["on_ack", "on_redy"]))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
