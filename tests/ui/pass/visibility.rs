//! Generated items are as visible as the annotated ones.

mod deep {
    pub(crate) mod inner {
        use verger::{ChildSpec, Context, supervisor, worker};

        #[worker]
        pub(crate) async fn in_crate(ctx: Context) {
            ctx.cancelled().await;
        }

        #[worker]
        pub(super) async fn in_parent() {}

        #[worker]
        pub(in crate::pass::visibility::deep) async fn in_deep() {}

        #[worker]
        async fn here() {}

        #[supervisor]
        pub(crate) struct InCrate {
            #[child]
            pub(crate) clock: ChildSpec,
            #[supervisor]
            pub(super) below: InParent,
        }

        #[supervisor]
        pub(super) struct InParent {
            #[child]
            here: ChildSpec,
        }

        impl InParent {
            pub(super) fn new() -> Self {
                Self { here: here() }
            }
        }
    }

    pub(crate) fn app() -> inner::InCrate {
        let _ = inner::in_deep();
        let _ = inner::InParent::new().builder();
        inner::InCrate { clock: inner::in_parent(), below: inner::InParent::new() }
    }
}

pub(crate) fn main() {
    let mut app = deep::app();
    assert_eq!(app.clock.name(), "in_parent");
    app.clock = deep::inner::in_crate();
    assert_eq!(app.clock.name(), "in_crate");
    drop(deep::app().run());
    let _ = deep::app().into_child();
    assert!(app.builder().build().unwrap().warnings().is_empty());
}
