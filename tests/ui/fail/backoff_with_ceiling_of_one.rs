use verger::{Context, Supervisor, worker};

#[worker(backoff(binary_slots, slot = "10ms", ceiling = 1))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
