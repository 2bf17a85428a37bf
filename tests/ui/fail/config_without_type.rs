use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config, restart_on_change)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
