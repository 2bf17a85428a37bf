//! A struct may have type parameters and constants. The bounds that the fields need are added.

use std::fmt::Display;
use std::time::Duration;

use verger::spec::Component;
use verger::{ChildSpec, Context, supervisor, worker};

#[derive(Clone)]
struct Echo<T>(T);

#[worker]
impl<T: Clone + Display + Send + Sync + 'static> Echo<T> {
    async fn run(&mut self, ctx: &Context) {
        ctx.set_status(self.0.to_string());
        ctx.cancelled().await;
    }
}

#[supervisor(max_restarts = LIMIT, period = self.period.into())]
struct App<A, B: Clone, C, P: Into<Duration> + Copy, const LIMIT: u32>
where
    B: Sync,
    Echo<B>: Send,
{
    #[child]
    any: A,
    #[child]
    echo: Echo<B>,
    #[supervisor]
    below: C,
    period: P,
}

#[supervisor]
struct Below<T: Component> {
    #[child]
    any: T,
}

fn clock() -> ChildSpec {
    verger::worker("clock", async |ctx| ctx.cancelled().await)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let period = Duration::from_secs(9);
    let app = App::<_, _, _, _, 7> {
        any: clock(),
        echo: Echo("hello"),
        below: Below { any: Echo(5) },
        period,
    };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let root = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!((root.max_restarts, root.period), (Some(7), period));
    for (path, status) in [("any", None), ("echo", Some("hello")), ("below/any", Some("5"))] {
        assert_eq!(tree.which_child(path).await.unwrap().status.as_deref(), status);
    }
    tree.stop("the test is over").await.unwrap();
}
