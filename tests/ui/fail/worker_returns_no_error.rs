use verger::{Context, Supervisor, worker};

struct Late;

#[worker]
async fn clock(ctx: Context) -> Result<(), Late> {
    ctx.cancelled().await;
    Err(Late)
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
