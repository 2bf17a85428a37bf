use verger::{Child, Context, Exit, async_trait, child};

#[derive(Clone)]
struct Db;

#[async_trait]
impl Child for Db {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

fn main() {
    let _ = child("db", Db);
}
