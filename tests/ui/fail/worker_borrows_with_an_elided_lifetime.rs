use verger::{Context, Supervisor, worker};

#[worker]
async fn clock(ctx: Context, zone: std::borrow::Cow<'_, str>) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock("UTC".into())).build();
}
