use verger::{ChildSpec, supervisor, worker};

#[supervisor(intensity(decaying, max = -1.0, half_life = "30s"))]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
