use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = "Settings")]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
