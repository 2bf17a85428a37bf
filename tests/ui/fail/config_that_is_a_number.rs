use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = 5)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
