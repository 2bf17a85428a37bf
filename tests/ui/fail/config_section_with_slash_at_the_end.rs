use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = Settings, config_section = "storage/")]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
