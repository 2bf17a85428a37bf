use verger::{Context, Supervisor, worker};

#[worker(restart = "transient")]
fn clock(ctx: Context) {
    drop(ctx);
}

fn main() {
    let _ = Supervisor::builder("app").child(clock()).build();
}
