use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = Settings, validate = "check")]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
