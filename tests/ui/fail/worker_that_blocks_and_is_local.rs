use verger::{BlockingContext, Supervisor, worker};

#[worker(blocking, local)]
fn hash(ctx: BlockingContext) {
    println!("{}", ctx.path());
}

fn main() {
    let _ = Supervisor::builder("app").child(hash()).build();
}
