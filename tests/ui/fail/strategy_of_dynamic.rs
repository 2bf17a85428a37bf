use verger::{DynamicSupervisor, supervisor};

#[supervisor]
struct App {
    #[dynamic(strategy = "one_for_all")]
    conns: DynamicSupervisor,
}

fn main() {
    let _ = App { conns: DynamicSupervisor }.builder().build();
}
