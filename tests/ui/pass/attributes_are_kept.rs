//! Attributes above and below the macro's keep their effect.

#![deny(missing_docs, warnings)]

use verger::{ChildSpec, Context, supervisor, worker};

/// Before and after.
#[derive(Clone)]
#[supervisor(strategy = "one_for_all")]
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct App {
    /// Documented.
    #[child]
    #[doc(alias = "tick")]
    pub clock: ChildSpec,
    /// Not a child.
    #[allow(dead_code, reason = "it is there to be shown")]
    pub region: &'static str,
}

/// Documented as well.
#[allow(unused_variables, reason = "that it is kept is the test")]
#[worker]
#[must_use = "or it won't tick"]
#[inline]
pub async fn clock(ctx: Context, zone: u32) {
    #![allow(unused_mut, reason = "an inner attribute")]

    let mut unused = 5;
}

/// Its lints are those of both, the constructor and the function.
#[expect(dead_code, reason = "it is unused")]
#[worker]
async fn superfluous() {}

/// With attributes on methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Db;

#[worker]
#[allow(unused_variables, reason = "that it is kept is the test")]
impl Db {
    /// Documented.
    #[inline]
    pub async fn run(&mut self, ctx: &Context) {
        let unused = 5;
    }

    #[must_use]
    fn new() -> Self {
        Self
    }
}

pub(crate) fn main() {
    let app = App { clock: clock(1), region: "eu" };
    let debug = format!("{:?}", app.clone());
    assert!(debug.starts_with("App {") && debug.contains("region: \"eu\""), "{debug}");
    let _ = app.builder();
    assert_eq!(Db::new(), Db);
}
