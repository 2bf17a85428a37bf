use verger::{ChildSpec, supervisor, worker};

#[supervisor(backoff(none), defaults(backoff(constant, delay = "1s")))]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
