use verger::{ChildSpec, Supervisor, worker};

#[worker(restart = "transient")]
trait Clock {
    fn into_spec(self) -> ChildSpec;
}

impl Clock for () {
    fn into_spec(self) -> ChildSpec {
        worker("clock", async |_| {})
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(().into_spec()).build();
}
