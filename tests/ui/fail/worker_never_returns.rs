use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context) -> ! {
    loop {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
