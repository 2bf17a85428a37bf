//! Children that wait: they count when they start.

use verger::{ChildSpec, Context, worker};

use crate::measure::Starts;

/// Each measurement has a process of its own, so there is one.
pub(crate) static STARTS: Starts = Starts::new();

pub(crate) fn child(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| {
        STARTS.one();
        ctx.cancelled().await;
    })
}

/// The same child so many times, since those of one supervisor need names of their own.
pub(crate) fn named(n: u64) -> impl Iterator<Item = ChildSpec> {
    let child = child("child");
    (0..n).map(move |number| child.clone().named(name(number)))
}

pub(crate) fn name(number: u64) -> String {
    format!("child-{number}")
}
