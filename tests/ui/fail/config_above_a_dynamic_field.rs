use verger::{DynamicSupervisor, supervisor};

#[supervisor]
struct App {
    #[dynamic(max_children = 10, config = Settings)]
    conns: DynamicSupervisor,
}

fn main() {
    let _ = App { conns: DynamicSupervisor };
}
