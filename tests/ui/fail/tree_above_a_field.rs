use verger::{SupervisorBuilder, Supervisor, supervisor};

#[supervisor]
struct App {
    #[tree(restart = "transient")]
    clocks: SupervisorBuilder,
}

fn main() {
    let _ = App { clocks: Supervisor::builder("clocks") }.builder().build();
}
