use verger::{ChildSpec, supervisor, worker};

#[supervisor(auto_shutdown = "any_signifcant")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
