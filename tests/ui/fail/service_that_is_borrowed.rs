use verger::service::Service;
use verger::{Context, Exit, worker};

#[worker]
async fn api(_ctx: Context, _pool: &mut Service<u8>) -> Exit {
    Ok(())
}

fn main() {
    drop(api());
}
