use verger::{ChildSpec, supervisor, worker};

#[supervisor(strategy = "one_for_all")]
struct App(#[child] ChildSpec, #[child(restart = "transient")] ChildSpec);

fn main() {
    let app = App(worker("clock", async |_| {}), worker("log", async |_| {}));
    let _ = app.builder().build();
}
