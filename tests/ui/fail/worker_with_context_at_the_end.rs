use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(zone: String, ctx: Context) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock("UTC".to_owned())).build();
}
