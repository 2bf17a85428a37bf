use verger::{BlockingContext, Supervisor, worker};

#[worker(blocking)]
async fn hash(ctx: BlockingContext) {
    println!("{}", ctx.path());
}

fn main() {
    let _ = Supervisor::builder("app").child(hash()).build();
}
