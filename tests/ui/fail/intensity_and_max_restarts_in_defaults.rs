use verger::{ChildSpec, supervisor, worker};

#[supervisor(defaults(intensity(tumbling, max = 3, period = "10s"), max_restarts = 5, period = "60s"))]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
