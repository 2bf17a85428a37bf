use verger::{Supervisor, supervisor};

#[supervisor]
mod app {
    use verger::{ChildSpec, worker};

    pub fn clock() -> ChildSpec {
        worker("clock", async |_| {})
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(app::clock()).build();
}
