use verger::{Context, supervisor, worker};

#[worker]
async fn clock(ctx: Context) {
    ctx.cancelled().await;
}

#[supervisor]
struct App<F: Fn() -> verger::ChildSpec> {
    #[child]
    clock: F,
}

fn main() {
    let _ = App { clock }.builder().build();
}
