use verger::{ChildSpec, supervisor};

struct Settings;

#[supervisor]
struct App {
    #[child(config = Settings)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
