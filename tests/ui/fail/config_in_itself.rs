use verger::{ChildSpec, supervisor};

#[supervisor(child(config = Settings))]
struct App {
    #[child]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
