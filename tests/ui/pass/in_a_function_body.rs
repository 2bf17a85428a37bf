//! Items in a function see the items around them.

use std::time::Duration;

use verger::{ChildSpec, Context, Supervisor, component, supervisor, worker};

fn tree() -> Supervisor {
    const GRACE: Duration = Duration::from_secs(9);

    #[worker(shutdown = GRACE)]
    async fn clock(ctx: Context, zone: Zone) {
        assert_eq!(zone, Zone::Utc);
        ctx.cancelled().await;
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Zone {
        Utc,
    }

    #[derive(Clone)]
    struct Db {
        zone: Zone,
    }

    #[worker(shutdown = GRACE)]
    impl Db {
        async fn run(&self) {
            assert_eq!(self.zone, Zone::Utc);
        }
    }

    #[supervisor(stop_deadline = GRACE)]
    struct App {
        #[child]
        clock: ChildSpec,
        #[child]
        db: Db,
    }

    let clock = clock(Zone::Utc);
    assert_eq!(component("x", Db { zone: Zone::Utc }).name(), "x");
    App { clock, db: Db { zone: Zone::Utc } }.builder().build().unwrap()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let tree = tree().start().await.unwrap();
    assert_eq!(tree.child_spec("clock").await.unwrap().shutdown, Duration::from_secs(9).into());
    tree.stop("the test is over").await.unwrap();
}
