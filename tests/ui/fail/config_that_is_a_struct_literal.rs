use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = Settings { batch: 1 })]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
