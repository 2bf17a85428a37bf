use verger::{Context, Supervisor, worker};

#[worker(failure_log(level = "info", critical = "error", after = 3))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
