use verger::{Context, Supervisor, worker};

#[worker(backoff(linear, base = "2s", cap = "5s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
