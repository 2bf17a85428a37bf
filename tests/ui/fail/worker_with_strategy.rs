use verger::{Context, Supervisor, worker};

#[worker(strategy = "one_for_all")]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
