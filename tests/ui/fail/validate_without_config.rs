use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(validate = check)]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
