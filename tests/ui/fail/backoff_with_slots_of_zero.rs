use verger::{Context, Supervisor, worker};

#[worker(backoff(binary_slots, slot = "0s"))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
