use std::sync::Arc;

use serde::Deserialize;
use verger::{ChildSpec, Exit, supervisor};

#[derive(Deserialize)]
struct Settings;

fn check(_: Arc<Settings>) -> Exit {
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
