use verger::{Context, Supervisor, worker};

#[worker(backoff(fibonacci, min = "1s", max = "10s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
