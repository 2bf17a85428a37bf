use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child]
    clock: ChildSpec,
    log: ChildSpec,
}

fn main() {
    let (clock, log) = (worker("clock", async |_| {}), worker("log", async |_| {}));
    let _ = App { clock, log }.builder().build();
}
