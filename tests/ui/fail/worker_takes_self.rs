use verger::{Context, Supervisor, worker};

struct Clock;

impl Clock {
    #[worker]
    async fn run(&self, ctx: Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let clock = worker("clock", async |ctx| Clock.run(ctx).await);
    let _ = Supervisor::builder("app").child(clock).build();
}
