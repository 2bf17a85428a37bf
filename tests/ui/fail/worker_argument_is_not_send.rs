use std::rc::Rc;

use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context, zone: Rc<str>) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock("UTC".into())).build();
}
