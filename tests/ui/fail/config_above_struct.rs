use verger::{ChildSpec, supervisor};

#[supervisor(config = Settings, validate = check)]
struct App {
    #[child]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
