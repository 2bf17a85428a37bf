use verger::{Context, Supervisor, worker};

#[worker(restart = "transient")]
#[worker(shutdown = "20s")]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
