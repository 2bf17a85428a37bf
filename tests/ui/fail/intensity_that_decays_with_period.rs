use verger::{ChildSpec, supervisor, worker};

#[supervisor(intensity(decaying, max = 5.0, period = "60s"))]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
