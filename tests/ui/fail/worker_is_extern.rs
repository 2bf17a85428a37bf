use verger::{Context, Supervisor, worker};

#[worker]
async extern "C" fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
