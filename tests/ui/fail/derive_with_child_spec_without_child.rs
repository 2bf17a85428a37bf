use verger::{Supervisor, worker};

#[derive(Supervisor)]
struct App {
    clock: verger::ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
