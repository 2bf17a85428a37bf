use verger::{Context, Supervisor, worker};

#[worker(readiness = "on_signal")]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
