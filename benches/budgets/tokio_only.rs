//! Supervisors as they are written without verger: a `JoinSet` and a `CancellationToken`.

use std::collections::HashMap;
use std::error::Error;
use std::pin::pin;

use tokio::task::{AbortHandle, Id, JoinSet};
use verger::CancellationToken;

use crate::measure::STARTS;

pub(crate) type Exit = Result<(), Box<dyn Error + Send + Sync>>;

pub(crate) type Children = JoinSet<Exit>;

/// One incarnation of a child, numbered from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incarnation {
    pub(crate) child: u64,
    pub(crate) number: u32,
}

/// A child that waits until it is cancelled.
pub(crate) async fn idle(stop: CancellationToken) -> Exit {
    STARTS.count();
    // Owned: the task is 128 bytes smaller than one that borrows the token.
    stop.cancelled_owned().await;
    Ok(())
}

/// Starts `n` idle children, and ends when all of them have ended.
pub(crate) async fn idle_children(n: u64, stop: CancellationToken) {
    let mut children = JoinSet::new();
    for _ in 0..n {
        children.spawn(idle(stop.clone()));
    }
    tokio::select! {
        () = stop.cancelled() => {}
        Some(_) = children.join_next() => stop.cancel(),
    }
    while children.join_next().await.is_some() {}
}

/// Starts `n` children, and restarts each child that ends.
pub(crate) async fn one_for_one(
    n: u64,
    stop: CancellationToken,
    start: impl Fn(&mut Children, Incarnation, CancellationToken) -> AbortHandle,
) {
    let mut children = JoinSet::new();
    let mut by_id: HashMap<Id, Incarnation> = HashMap::new();
    for child in 0..n {
        let first = Incarnation { child, number: 1 };
        by_id.insert(start(&mut children, first, stop.clone()).id(), first);
    }
    let mut stopped = pin!(stop.cancelled());
    loop {
        let ended = tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(ended) = children.join_next_with_id() => ended,
        };
        let id = ended.map_or_else(|error| error.id(), |(id, _)| id);
        let mut next = by_id.remove(&id).expect("each task is in the map");
        next.number += 1;
        by_id.insert(start(&mut children, next, stop.clone()).id(), next);
    }
    while children.join_next().await.is_some() {}
}

/// Starts `n` children, and restarts all of them when one ends.
pub(crate) async fn one_for_all(
    n: u64,
    stop: CancellationToken,
    start: impl Fn(&mut Children, u64, CancellationToken) -> AbortHandle,
) {
    let mut children = JoinSet::new();
    while !stop.is_cancelled() {
        let group = stop.child_token();
        for child in 0..n {
            start(&mut children, child, group.clone());
        }
        children.join_next().await;
        group.cancel();
        while children.join_next().await.is_some() {}
    }
}
