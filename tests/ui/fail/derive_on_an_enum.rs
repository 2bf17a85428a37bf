use verger::{ChildSpec, Supervisor, worker};

#[derive(Supervisor)]
#[tree(strategy = "one_for_all")]
enum App {
    Clock {
        #[child]
        clock: ChildSpec,
    },
}

fn main() {
    let clock = worker("clock", async |_| {});
    let _ = App::Clock { clock }.builder().build();
}
