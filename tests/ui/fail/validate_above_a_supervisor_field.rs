use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[supervisor(restart = "transient", validate = check)]
    ingest: ChildSpec,
}

fn main() {
    let _ = |ingest: ChildSpec| App { ingest };
}
