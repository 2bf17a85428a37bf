use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child]
    clock: ChildSpec,
}

impl App {
    async fn run(self) {
        drop(self.clock);
    }
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
