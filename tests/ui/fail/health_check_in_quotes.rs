use verger::{ChildSpec, supervisor};

#[supervisor]
struct App {
    #[child(health_check = "answers")]
    mqtt: ChildSpec,
}

fn main() {
    let _ = |mqtt: ChildSpec| App { mqtt };
}
