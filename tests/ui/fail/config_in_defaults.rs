use verger::{ChildSpec, supervisor};

#[supervisor(defaults(config = Settings))]
struct App {
    #[child]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
