use verger::{ChildSpec, Supervisor, supervisor, worker};

#[supervisor]
trait App {
    fn into_spec(self) -> ChildSpec;
}

impl App for () {
    fn into_spec(self) -> ChildSpec {
        worker("clock", async |_| {})
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(().into_spec()).build();
}
