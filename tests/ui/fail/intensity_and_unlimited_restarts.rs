use std::time::Duration;

use verger::{ChildSpec, supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

#[supervisor(intensity = verger::policy::Intensity::tumbling(3, SECOND), unlimited_restarts)]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
