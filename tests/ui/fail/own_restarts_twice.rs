use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(own_restarts(max = 5, period = "60s"), own_restarts(max = 6, period = "60s"))]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
