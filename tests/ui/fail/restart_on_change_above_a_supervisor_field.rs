use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[supervisor(restart_on_change)]
    ingest: ChildSpec,
}

fn main() {
    let _ = |ingest: ChildSpec| App { ingest };
}
