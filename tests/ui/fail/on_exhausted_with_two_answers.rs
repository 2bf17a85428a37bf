use verger::{ChildSpec, supervisor, worker};

#[supervisor(on_exhausted(pause = "15s", exit = 3))]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
