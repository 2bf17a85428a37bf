use std::cell::Cell;

use verger::{Context, supervisor, worker};

#[derive(Clone)]
struct Clock {
    ticks: Cell<u32>,
}

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        self.ticks.set(1);
        ctx.cancelled().await;
    }
}

#[supervisor]
struct App {
    #[child]
    clock: Clock,
}

fn main() {
    let _ = App { clock: Clock { ticks: Cell::new(0) } }.builder().build();
}
