use verger::{ChildSpec, supervisor, worker};

const NAME: &str = "clock";

#[supervisor]
struct App {
    #[child(name = NAME)]
    clock: ChildSpec,
}

fn main() {
    let clock = worker(NAME, async |_| {});
    let _ = App { clock }.builder().build();
}
