//! Items that another macro writes, with parts of the macro and of its caller.

use std::time::Duration;

use verger::{ChildSpec, Context, DynamicSupervisor, Supervisor, supervisor, worker};

macro_rules! tree {
    ($name:ident { $($child:ident: $ty:ty),* } limit $limit:expr, $strategy:literal) => {
        #[supervisor(strategy = $strategy, max_restarts = $limit, period = self.period)]
        struct $name {
            $(#[child] $child: $ty,)*
            #[dynamic]
            conns: DynamicSupervisor,
            period: Duration,
        }
    };
}

macro_rules! derived {
    ($name:ident { $($child:ident: $ty:ty),* }) => {
        #[derive(Supervisor)]
        #[tree(stop_deadline = self.deadline)]
        struct $name {
            $(#[child(shutdown = self.deadline)] $child: $ty,)*
            deadline: Duration,
        }
    };
}

macro_rules! poller {
    ($name:ident($context:ty, $arg:ident: $ty:ty) $body:block) => {
        #[worker(crate = $crate::pass::macro_rules::reexport::verger, restart = "transient")]
        async fn $name(ctx: $context, $arg: $ty) {
            // Only the compiler can parse this, without a semicolon.
            $body
            ctx.cancelled().await;
        }
    };
}

macro_rules! annotated {
    ($item:item) => {
        #[worker]
        $item
    };
}

macro_rules! service {
    ($name:ident($data:ty) $grace:literal $jitter:literal |$this:ident, $ctx:ident| $body:block) => {
        #[derive(Clone)]
        struct $name($data);

        #[worker(
            shutdown = $grace,
            backoff(exponential, min = $grace, jitter = $jitter),
            on_exhausted = "park"
        )]
        impl $name {
            async fn run(&mut self, $ctx: &Context) {
                let $this = self;
                $body
                $ctx.cancelled().await;
            }
        }
    };
}

mod reexport {
    pub(crate) use verger;
}

poller!(clock(Context, hour: u32) { assert_eq!(hour, 12) });
service!(Db(u32) "9s" 0.5 |this, ctx| { assert_eq!((this.0, ctx.is_cancelled()), (5, false)) });
annotated! {
    /// Ticks.
    async fn watch(ctx: Context) {
        ctx.cancelled().await;
    }
}
tree!(App { clock: ChildSpec, db: Db } limit 2 + 2, "one_for_all");
derived!(Below { clock: ChildSpec, db: Db });

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let period = Duration::from_secs(10);
    let below = Below { clock: clock(12), db: Db(5), deadline: period };
    let app = App { clock: clock(12), db: Db(5), conns: DynamicSupervisor, period };
    let tree = app.builder().child(below).child(watch()).build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let root = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!((root.max_restarts, root.period), (Some(4), period));
    for path in ["clock", "db", "below/clock", "below/db", "watch"] {
        assert_eq!(tree.which_child(path).await.unwrap().restarts, 0);
    }
    tree.stop("the test is over").await.unwrap();
}
