use verger::{Context, Supervisor, worker};

#[worker(own_restarts(max = 5))]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
