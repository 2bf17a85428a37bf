use verger::{Context, Supervisor, worker};

#[worker]
async unsafe fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
