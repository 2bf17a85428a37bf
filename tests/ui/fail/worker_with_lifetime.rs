use verger::{Context, Supervisor, worker};

#[worker]
async fn clock<'a>(ctx: Context, zone: std::borrow::Cow<'a, str>) {
    println!("{zone}");
    ctx.cancelled().await;
}

fn main() {
    let _ = Supervisor::builder("app").child(clock("UTC".into())).build();
}
