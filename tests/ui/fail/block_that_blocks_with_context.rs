use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Hasher;

#[worker(blocking)]
impl Hasher {
    fn run(&mut self, ctx: &Context) {
        println!("{}", ctx.path());
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("hasher", Hasher)).build();
}
