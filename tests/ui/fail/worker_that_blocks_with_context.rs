use verger::{Context, Supervisor, worker};

#[worker(blocking)]
fn hash(ctx: Context) {
    println!("{}", ctx.path());
}

fn main() {
    let _ = Supervisor::builder("app").child(hash()).build();
}
