use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = Settings, restart_on_chagne)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
