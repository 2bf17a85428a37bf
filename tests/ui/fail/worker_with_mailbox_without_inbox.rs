use verger::{Context, Supervisor, worker};

#[worker(mailbox = |it| it.max_attempts(3), capacity = 50)]
async fn writer(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(writer()).build();
}
