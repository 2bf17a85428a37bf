use verger::{Context, Supervisor, worker};

struct Zone;

#[worker]
async fn clock(ctx: Context, zone: Zone) {
    ctx.cancelled().await;
    drop(zone);
}

fn main() {
    let _ = Supervisor::builder("app").child(clock(Zone)).build();
}
