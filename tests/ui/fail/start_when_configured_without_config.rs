use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(start_when_configured)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
