use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: &Context, zone: String) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock("UTC".to_owned())).build();
}
