use verger::{Context, Supervisor, worker};

#[worker(watchdog = "0s")]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
