use verger::{Context, Supervisor, worker};

#[worker(max_restarts = 5)]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
