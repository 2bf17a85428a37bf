use serde::Deserialize;
use verger::{ChildSpec, supervisor};

#[derive(Deserialize)]
struct Settings;

#[supervisor]
struct App {
    #[child(config = Setings)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec, _: Settings| App { writer };
}
