use verger::{Supervisor, SupervisorBuilder, supervisor};

#[supervisor]
struct App {
    #[tree(restart = "transient")]
    clocks: SupervisorBuilder,
}

fn main() {
    let _ = App { clocks: Supervisor::builder("clocks") }.builder().build();
}
