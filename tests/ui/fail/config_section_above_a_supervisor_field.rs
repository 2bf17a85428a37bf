use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[supervisor(config_section = "storage")]
    ingest: ChildSpec,
}

fn main() {
    let _ = |ingest: ChildSpec| App { ingest };
}
