use verger::{ChildSpec, Supervisor, worker};

#[derive(Supervisor)]
#[tree = "one_for_all"]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
