use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(activation_timeout = self.patience)]
    clock: ChildSpec,
    patience: u64,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock, patience: 5 }.builder().build();
}
