use verger::{Context, supervisor, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

#[supervisor]
struct App {
    #[supervisor]
    clock: Clock,
}

fn main() {
    let _ = App { clock: Clock }.builder().build();
}
