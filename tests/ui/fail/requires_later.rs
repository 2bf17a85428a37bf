use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct App {
    #[child(requires = "api")]
    db: ChildSpec,
    #[child]
    api: ChildSpec,
}

fn main() {
    let (db, api) = (worker("db", async |_| {}), worker("api", async |_| {}));
    let _ = App { db, api }.builder().build();
}
