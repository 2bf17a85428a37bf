use verger::{Context, Supervisor, worker};

#[worker]
async fn clock<Z: Default + std::fmt::Display>(ctx: Context) {
    let zone = Z::default();
    ctx.cancelled().await;
    println!("{zone}");
}

fn main() {
    let _ = Supervisor::builder("app").child(clock::<String>()).build();
}
