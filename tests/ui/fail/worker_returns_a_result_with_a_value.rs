use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context) -> Result<u32, std::num::ParseIntError> {
    ctx.cancelled().await;
    "5".parse()
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
