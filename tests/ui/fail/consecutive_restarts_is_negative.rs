use verger::{Context, Supervisor, worker};

#[worker(consecutive_restarts = -1)]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
