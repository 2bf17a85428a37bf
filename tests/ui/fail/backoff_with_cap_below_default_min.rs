use verger::{Context, Supervisor, worker};

#[worker(backoff(fibonacci, cap = "100ms"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
