use std::rc::Rc;

use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context) {
    let zone: Rc<str> = "UTC".into();
    ctx.cancelled().await;
    println!("{zone}");
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
