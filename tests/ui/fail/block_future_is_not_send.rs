use std::rc::Rc;

use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        let zone: Rc<str> = "UTC".into();
        ctx.cancelled().await;
        println!("{zone}");
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
