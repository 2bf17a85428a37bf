use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = Settings, start_if_configured)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
