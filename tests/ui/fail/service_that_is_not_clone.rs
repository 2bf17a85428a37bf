use verger::service::Service;
use verger::{Context, Exit, worker};

struct Pool;

#[worker]
async fn api(_ctx: Context, _pool: Service<Pool>) -> Exit {
    Ok(())
}

fn main() {
    drop(api());
}
