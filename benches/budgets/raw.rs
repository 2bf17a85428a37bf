//! A supervisor that restarts, as one writes it by hand.

use std::collections::HashMap;
use std::error::Error;
use std::pin::pin;

use tokio::task::{AbortHandle, Id, JoinSet};
use verger::CancellationToken;

pub(crate) type Exit = Result<(), Box<dyn Error + Send + Sync>>;

pub(crate) type Children = JoinSet<Exit>;

/// Which child, and which run of it.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) index: u64,
    pub(crate) number: u32,
}

/// Starts `n` children, and starts each again that ends.
///
/// They are spawned by `start`, so that children of several types need no box.
pub(crate) async fn supervise(
    n: u64,
    stop: CancellationToken,
    start: impl Fn(&mut Children, Run, CancellationToken) -> AbortHandle,
) {
    let mut children = JoinSet::new();
    let mut by_id: HashMap<Id, Run> = HashMap::new();
    for index in 0..n {
        let run = Run { index, number: 1 };
        by_id.insert(start(&mut children, run, stop.clone()).id(), run);
    }
    // Made once: each new one would be entered into a list.
    let mut stopped = pin!(stop.cancelled());
    loop {
        let ended = tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(ended) = children.join_next_with_id() => ended,
        };
        // Whether it returned or panicked makes no difference here.
        let id = ended.map_or_else(|error| error.id(), |(id, _)| id);
        let mut run = by_id.remove(&id).expect("each is entered");
        run.number += 1;
        by_id.insert(start(&mut children, run, stop.clone()).id(), run);
    }
    while children.join_next().await.is_some() {}
}

/// Starts `n` children, and all of them again when one ends.
pub(crate) async fn supervise_together(
    n: u64,
    stop: CancellationToken,
    start: impl Fn(&mut Children, u64, CancellationToken) -> AbortHandle,
) {
    let mut children = JoinSet::new();
    while !stop.is_cancelled() {
        let together = stop.child_token();
        for index in 0..n {
            start(&mut children, index, together.clone());
        }
        children.join_next().await;
        together.cancel();
        while children.join_next().await.is_some() {}
    }
}
