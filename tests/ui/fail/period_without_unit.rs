use verger::{ChildSpec, supervisor, worker};

#[supervisor(max_restarts = 5, period = "60")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
