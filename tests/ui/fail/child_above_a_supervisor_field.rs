use verger::{ChildSpec, supervisor, worker};

#[supervisor]
#[derive(Clone)]
struct Clocks {
    #[child]
    clock: ChildSpec,
}

#[supervisor]
struct App {
    #[child]
    clocks: Clocks,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clocks: Clocks { clock } }.builder().build();
}
