use verger::{ChildSpec, supervisor, worker};

#[supervisor(start = "concurrent")]
struct App {
    #[child(requires = "api")]
    db: ChildSpec,
    #[child(requires = "db")]
    api: ChildSpec,
}

fn main() {
    let (db, api) = (worker("db", async |_| {}), worker("api", async |_| {}));
    let _ = App { db, api }.builder().build();
}
