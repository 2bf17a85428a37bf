use verger::{Context, Supervisor, worker};

#[worker(backoff(fibonacci, min = "10s", max = "1s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
