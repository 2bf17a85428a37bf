use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(own_restarts(max = 12, period = "5m", colour = "red"))]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
