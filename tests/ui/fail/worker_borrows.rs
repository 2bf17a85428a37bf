use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context, zone: &str) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock(&String::from("UTC"))).build();
}
