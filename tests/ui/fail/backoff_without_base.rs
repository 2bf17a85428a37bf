use verger::{Context, Supervisor, worker};

#[worker(backoff(linear, max = "30s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
