use verger::{ChildSpec, supervisor, worker};

#[supervisor]
enum App {
    #[child]
    Clock {
        #[child]
        clock: ChildSpec,
    },
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App::Clock { clock }.builder().build();
}
