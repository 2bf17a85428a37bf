use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child]
    db: ChildSpec,
    #[child(requires = ["db", "api"])]
    api: ChildSpec,
}

fn main() {
    let (db, api) = (worker("db", async |_| {}), worker("api", async |_| {}));
    let _ = App { db, api }.builder().build();
}
