use verger::{Context, Supervisor, worker};

#[worker(backoff(geometric, min = "1s", max = "30s", steps = 5, cap = "500ms"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
