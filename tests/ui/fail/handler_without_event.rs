use std::sync::Arc;

use verger::{Context, component, worker};

struct Saved;

#[derive(Clone)]
struct Indexer(Arc<Saved>);

#[worker]
impl Indexer {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }

    #[on]
    async fn saved(&self, _: &Context) {}
}

fn main() {
    drop(component("indexer", Indexer(Arc::new(Saved))));
}
