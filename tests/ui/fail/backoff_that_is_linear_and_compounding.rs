use verger::{Context, Supervisor, worker};

#[worker(backoff(linear, base = "2s", compounding))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
