use verger::{Supervisor, component, worker};

#[derive(Clone)]
struct Clock;

#[worker]
impl Clock {
    fn new() -> Self {
        Self
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock::new())).build();
}
