use verger::{Context, Supervisor, worker};

#[worker(backoff(geometric, min = "1s", max = "30s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
