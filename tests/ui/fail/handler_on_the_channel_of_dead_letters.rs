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

    #[on(channel = "__dead_letter__")]
    async fn saved(&self, _: Arc<Saved>) {}
}

fn main() {
    drop(component("indexer", Indexer(Arc::new(Saved))));
}
