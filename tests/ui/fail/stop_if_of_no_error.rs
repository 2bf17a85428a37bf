use verger::{Context, Supervisor, worker};

#[worker(stop_if = |text: &String| text.is_empty())]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
