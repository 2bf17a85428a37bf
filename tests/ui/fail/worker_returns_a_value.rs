use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context) -> u32 {
    ctx.cancelled().await;
    5
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
