use verger::{ChildSpec, Supervisor, worker};

#[derive(Supervisor)]
#[tree(strategy = "all")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
