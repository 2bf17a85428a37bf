use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    fn run(&mut self, ctx: &Context) {
        println!("{}", ctx.path());
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock)).build();
}
