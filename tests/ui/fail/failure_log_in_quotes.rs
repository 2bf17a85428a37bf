use verger::{Context, Supervisor, worker};

#[worker(failure_log = "warning")]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
