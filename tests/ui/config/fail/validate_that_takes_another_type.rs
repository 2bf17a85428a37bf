use serde::Deserialize;
use verger::{ChildSpec, Exit, supervisor};

#[derive(Deserialize)]
struct Settings;

async fn check(_: u8) -> Exit {
    Ok(())
}

#[supervisor]
struct App {
    #[child(config = Settings, validate = check)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
