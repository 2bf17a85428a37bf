use verger::{Context, Supervisor, worker};

#[worker(leave_down_if = |text: &String| text.is_empty())]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
