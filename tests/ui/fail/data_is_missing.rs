use verger::{ChildSpec, supervisor, worker};

#[supervisor(max_restarts = self.limit, period = "60s")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
