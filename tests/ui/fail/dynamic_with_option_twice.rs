use verger::{DynamicSupervisor, supervisor};

#[supervisor]
struct App {
    #[dynamic(restart = "transient", child(restart = "temporary"))]
    conns: DynamicSupervisor,
}

fn main() {
    let _ = App { conns: DynamicSupervisor }.builder().build();
}
