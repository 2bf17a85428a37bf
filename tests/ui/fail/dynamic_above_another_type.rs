use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[dynamic(max_children = 10)]
    conns: ChildSpec,
}

fn main() {
    let _ = App { conns: worker("conn", async |_| {}) }.builder().build();
}
