use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(max_restarts = 5, period = "60s")]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
