use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(every = "10s")]
    cleanup: ChildSpec,
}

fn build(cleanup: ChildSpec) {
    let _ = App { cleanup }.builder().build();
}

fn main() {
    let _ = build;
}
