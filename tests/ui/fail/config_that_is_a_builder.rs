use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(config = ChildConfig::<Settings>::new().validate(check), restart = "transient")]
    writer: ChildSpec,
}

fn main() {
    let _ = |writer: ChildSpec| App { writer };
}
