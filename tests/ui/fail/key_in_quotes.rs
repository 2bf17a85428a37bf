use verger::{ChildSpec, supervisor, worker};

#[supervisor("strategy" = "one_for_all")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
