use verger::{Context, Supervisor, supervisor, worker};

#[supervisor(strategy = "one_for_all")]
async fn app(ctx: Context) {
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(worker("app", app)).build();
}
