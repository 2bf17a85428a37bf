//! The attribute and the derive macro make the same tree.

use verger::{ChildSpec, DynamicSupervisor, Supervisor, supervisor, worker};

mod by_attribute {
    use super::*;

    #[supervisor(strategy = "rest_for_one", backoff(linear, base = "1s"), child(significant))]
    pub(super) struct App {
        #[child(restart = "transient")]
        pub(super) clock: ChildSpec,
        #[supervisor(shutdown = "9s")]
        pub(super) below: Below,
        #[dynamic(unlimited_restarts)]
        pub(super) conns: DynamicSupervisor,
    }

    #[supervisor(name = "deep")]
    pub(super) struct Below {}
}

mod by_derive {
    use super::*;

    #[derive(Supervisor)]
    #[tree(strategy = "rest_for_one", backoff(linear, base = "1s"), child(significant))]
    pub(super) struct App {
        #[child(restart = "transient")]
        pub(super) clock: ChildSpec,
        #[tree(shutdown = "9s")]
        pub(super) below: Below,
        #[dynamic(unlimited_restarts)]
        pub(super) conns: DynamicSupervisor,
    }

    #[derive(Supervisor)]
    #[tree(name = "deep")]
    pub(super) struct Below {}
}

pub(crate) fn main() {
    let (clock, conns) = (|| worker("x", async |_| {}), DynamicSupervisor);
    let one = || by_attribute::App { clock: clock(), below: by_attribute::Below {}, conns };
    let other = || by_derive::App { clock: clock(), below: by_derive::Below {}, conns };
    assert_eq!(format!("{:?}", one().builder()), format!("{:?}", other().builder()));
    assert_eq!(format!("{:?}", one().into_child()), format!("{:?}", other().into_child()));
    let deep = (by_attribute::Below {}.into_child(), by_derive::Below {}.into_child());
    assert_eq!((deep.0.name(), deep.1.name()), ("deep", "deep"));
}
