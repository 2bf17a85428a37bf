use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child]
    db: ChildSpec,
    #[child(restart = "transient", significant)]
    api: ChildSpec,
}

fn main() {
    let (db, api) = (worker("db", async |_| {}), worker("api", async |_| {}));
    let _ = App { db, api }.builder().build();
}
