use std::time::Duration;

use verger::{ChildSpec, supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

#[supervisor]
struct App {
    #[child(own_restarts(max = 5, period = "60s"), intensity = verger::policy::Intensity::tumbling(3, SECOND))]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
