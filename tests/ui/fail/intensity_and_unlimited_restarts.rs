use verger::{ChildSpec, supervisor, worker};

#[supervisor(intensity(tumbling, max = 3, period = "10s"), unlimited_restarts)]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
