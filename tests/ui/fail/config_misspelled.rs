use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(confg = Settings, restart_on_change)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
