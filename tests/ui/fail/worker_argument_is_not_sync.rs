use std::cell::Cell;

use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context, hour: Cell<u32>) {
    hour.set(12);
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock(Cell::new(11))).build();
}
