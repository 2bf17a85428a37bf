use verger::{ChildSpec, Supervisor};

#[derive(Supervisor)]
struct App {
    #[tree(config = Settings)]
    ingest: ChildSpec,
}

fn main() {
    let _ = |ingest: ChildSpec| App { ingest };
}
