//! The crate may have another name or path; the expansion then uses only that path.

mod reexport {
    pub(crate) use verger;
}

/// What would be taken without `crate = …` isn't what is meant.
mod named {
    pub(crate) mod verger {
        pub(crate) const IS_EMPTY: bool = true;
    }
}

mod renamed {
    use sup::{ChildSpec, Context, Supervisor, supervisor, worker};

    #[worker(crate = ::sup, restart = "transient")]
    pub(crate) async fn clock(ctx: Context) {
        ctx.cancelled().await;
    }

    #[derive(Clone)]
    pub(crate) struct Db;

    #[worker(crate = sup, shutdown = "infinity")]
    impl Db {
        async fn run(&self) {}
    }

    #[supervisor(crate = ::sup, strategy = "one_for_all", backoff(none))]
    pub(crate) struct App {
        #[child(restart = "temporary")]
        pub(crate) clock: ChildSpec,
        #[child]
        pub(crate) db: Db,
        #[supervisor]
        pub(crate) below: Below,
    }

    #[derive(Supervisor)]
    #[tree(crate = sup)]
    pub(crate) struct Below {
        #[child]
        pub(crate) clock: ChildSpec,
    }
}

mod reexported {
    use super::named::verger;
    use super::reexport::verger::{ChildSpec, Context, supervisor, worker};

    #[worker(crate = super::reexport::verger)]
    pub(crate) async fn clock(ctx: Context) {
        assert!(verger::IS_EMPTY);
        ctx.cancelled().await;
    }

    #[supervisor(crate = super::reexport::verger)]
    pub(crate) struct App {
        #[child]
        pub(crate) clock: ChildSpec,
    }
}

pub(crate) fn main() {
    use renamed::{App, Below, Db, clock};

    let below = Below { clock: clock() };
    let app = App { clock: clock(), db: Db, below };
    assert!(app.builder().build().is_ok());
    let app = reexported::App { clock: reexported::clock() };
    assert!(app.builder().build().is_ok());
}
