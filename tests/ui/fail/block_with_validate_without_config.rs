use verger::{Context, component, worker};

#[derive(Clone)]
struct Clock;

#[worker(validate = check)]
impl Clock {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = component("clock", Clock);
}
