use verger::{Context, Supervisor, worker};

struct Zone;

#[worker]
async fn clock(ctx: Context, zone: Zone, hour: u32) {
    ctx.cancelled().await;
    drop((zone, hour));
}

fn main() {
    let _ = Supervisor::builder("app").child(clock(Zone, 12)).build();
}
