use verger::{ChildSpec, supervisor, worker};

#[supervisor(preset = "kubelet")]
struct App {
    #[child]
    clock: ChildSpec,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App { clock }.builder().build();
}
