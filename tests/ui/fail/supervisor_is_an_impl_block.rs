use verger::{ChildSpec, Supervisor, supervisor, worker};

struct App {
    clock: ChildSpec,
}

#[supervisor]
impl App {
    fn into_child(self) -> ChildSpec {
        self.clock
    }
}

fn main() {
    let app = App { clock: worker("clock", async |_| {}) };
    let _ = Supervisor::builder("app").child(app.into_child()).build();
}
