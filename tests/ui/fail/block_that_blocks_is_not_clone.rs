use verger::{BlockingContext, Supervisor, component, worker};

struct Hasher;

#[worker(blocking)]
impl Hasher {
    fn run(&mut self, ctx: &BlockingContext) {
        println!("{}", ctx.path());
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("hasher", Hasher)).build();
}
