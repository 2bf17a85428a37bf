use verger::{Context, Supervisor, worker};

#[worker(leave_down_if = |error| error.is_fatal())]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
