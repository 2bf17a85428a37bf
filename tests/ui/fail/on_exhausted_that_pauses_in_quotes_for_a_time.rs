use verger::{ChildSpec, supervisor, worker};

#[supervisor(on_exhausted = "pause 20s")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
