use verger::{Context, supervisor, worker};

struct Clock;

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

#[supervisor]
struct App {
    #[child(restart = "transient")]
    clock: Clock,
}

fn main() {
    let _ = App { clock: Clock }.builder().build();
}
