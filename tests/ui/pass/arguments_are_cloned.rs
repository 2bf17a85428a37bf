//! Each incarnation gets clones of the original arguments, or of the prototype.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use verger::{ChildSpec, Context, Exit, supervisor, worker};

type Seen = Arc<Mutex<Vec<(u32, u32)>>>;

#[worker]
async fn function(ctx: Context, mut count: u32, seen: Seen) -> Exit {
    count += 1;
    seen.lock().unwrap().push((ctx.incarnation(), count));
    Err("again".into())
}

#[derive(Clone)]
struct Block {
    count: u32,
    seen: Seen,
}

#[worker]
impl Block {
    async fn run(&mut self, ctx: &Context) -> Exit {
        self.count += 1;
        self.seen.lock().unwrap().push((ctx.incarnation(), self.count));
        Err("again".into())
    }
}

#[supervisor(unlimited_restarts, backoff(constant, delay = "1s"))]
struct App {
    #[child]
    function: ChildSpec,
    #[child]
    block: Block,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (first, second) = (Seen::default(), Seen::default());
    let block = Block { count: 6, seen: Arc::clone(&second) };
    let app = App { function: function(4, Arc::clone(&first)), block };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(*first.lock().unwrap(), [(1, 5), (2, 5), (3, 5)]);
    assert_eq!(*second.lock().unwrap(), [(1, 7), (2, 7), (3, 7)]);
    tree.stop("the test is over").await.unwrap();
}
