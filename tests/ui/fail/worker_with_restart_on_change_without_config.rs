use verger::{Context, Supervisor, worker};

#[worker(restart_on_change)]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
