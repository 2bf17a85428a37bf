use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(fallback = "bestsellers")]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
