//! The shards of a member as children of their supervisor: starts them, stops them, and finds those that have ended.
//!
//! # Invariants
//!
//! 1. No call of the supervisor is waited for in place, so that one shard delays no other.
//! 2. A result counts for the claim that it belongs to, and for no later one of the same shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::shared::{Phase, Shared, shard_of};
use crate::error::ControlError;
use crate::handle::{ChildRef, SupervisorHandle};
use crate::lifecycle::Lifecycle;
use crate::named_task;
use crate::status::ChildInfo;
use crate::subscriber::warn;

/// See the [module](self).
pub(super) struct ShardChildren {
    shared: Arc<Shared>,
    supervisor: SupervisorHandle,
    calls: JoinSet<Done>,
    /// The shards whose lease is granted.
    running: BTreeSet<usize>,
}

/// A call of the supervisor that has returned.
pub(super) enum Done {
    Started {
        shard: usize,
        claim: u64,
        child: Result<ChildRef, ControlError>,
    },
    Ended {
        shard: usize,
        claim: u64,
    },
    /// All children, and the claims whose children had been added before.
    Listed {
        added: BTreeMap<usize, u64>,
        children: Result<Vec<ChildInfo>, ControlError>,
    },
    /// There is nothing to note.
    Other,
}

impl ShardChildren {
    pub(super) fn new(shared: Arc<Shared>, supervisor: SupervisorHandle) -> Self {
        Self { shared, supervisor, calls: JoinSet::new(), running: BTreeSet::new() }
    }

    /// Returns how many shards have their lease.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Takes over the children that an earlier coordinator has started, and ends those that are unknown.
    ///
    /// Returns their shards, each with whether its lease is granted.
    ///
    /// # Errors
    ///
    /// If the supervisor has ended.
    pub(super) async fn adopt(&mut self) -> Result<BTreeMap<usize, bool>, ControlError> {
        let children = self.supervisor.children().await?;
        let mut names = BTreeMap::new();
        for child in &children {
            let name = child.path.name();
            let known =
                shard_of(name).filter(|it| self.shared.with(|state| state.here.contains_key(it)));
            match known {
                Some(shard) if !names.contains_key(&shard) => {
                    drop(names.insert(shard, name.to_owned()))
                }
                _ => self.end_child(name.to_owned(), Done::Other),
            }
        }
        let (here, gone) = self.shared.with(|state| {
            let all = std::mem::take(&mut state.here).into_iter();
            let (here, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
                all.partition(|(shard, _)| names.contains_key(shard));
            state.here = here;
            for (shard, here) in &mut state.here {
                here.child = names.remove(shard);
                if here.phase == Phase::Ending {
                    // It isn't known whether it was stopped.
                    here.phase = Phase::Waiting { holder: None };
                }
            }
            let here = state.here.iter().map(|(shard, it)| (*shard, it.phase == Phase::Running));
            (here.collect::<BTreeMap<_, _>>(), gone)
        });
        drop(gone);
        self.running = here.iter().filter(|(_, granted)| **granted).map(|(it, _)| *it).collect();
        Ok(here)
    }

    /// Claims a shard: adds its child, which starts once its lease is granted.
    pub(super) fn start(&mut self, shard: usize) {
        let (claim, spec) = self.shared.claim(shard);
        let supervisor = self.supervisor.clone();
        let start = async move {
            let child = supervisor.start_child(spec).await;
            Done::Started { shard, claim, child }
        };
        named_task::spawn_in(&mut self.calls, || format!("start shard {shard}"), start);
    }

    /// Stops a shard, with its grace. Its lease is released then.
    pub(super) fn stop(&mut self, shard: usize) {
        let child = self.shared.with(|state| {
            let here = state.here.get_mut(&shard)?;
            here.phase = Phase::Ending;
            Some((here.claim, here.child.clone()?))
        });
        // Otherwise its start is about to return, and it is stopped then.
        if let Some((claim, child)) = child {
            self.end_child(child, Done::Ended { shard, claim });
        }
    }

    fn end_child(&mut self, child: String, done: Done) {
        let supervisor = self.supervisor.clone();
        let name = child.clone();
        let stop = async move {
            // It has ended already, or the supervisor ends it.
            let _ = supervisor.stop_child(&child).await;
            done
        };
        named_task::spawn_in(&mut self.calls, || format!("stop {name}"), stop);
    }

    /// Asks for all children, to find those that have ended by themselves.
    pub(super) fn list(&mut self) {
        let added = self.shared.with(|state| {
            let added = state.here.iter().filter(|(_, here)| here.child.is_some());
            added.map(|(shard, here)| (*shard, here.claim)).collect()
        });
        let supervisor = self.supervisor.clone();
        let list = async move {
            let children = supervisor.children().await;
            Done::Listed { added, children }
        };
        named_task::spawn_in(&mut self.calls, || "list the shards".to_owned(), list);
    }

    /// Notes that the lease of a claim is granted, or waited for. Returns whether the claim is current.
    pub(super) fn on_lease(&mut self, shard: usize, claim: u64, is_granted: bool) -> bool {
        let is_current = self.is_current(shard, claim);
        if is_current && is_granted {
            self.running.insert(shard);
        } else if is_current {
            self.running.remove(&shard);
        }
        is_current
    }

    fn is_current(&self, shard: usize, claim: u64) -> bool {
        self.shared.with(|state| state.here.get(&shard).is_some_and(|here| here.claim == claim))
    }

    /// Waits for the next call to return. Forever if there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> Done {
        match self.calls.join_next().await {
            Some(done) => done.unwrap_or(Done::Other),
            None => std::future::pending().await,
        }
    }

    /// Notes the result of a call. Returns the shards that have ended.
    pub(super) fn on_done(&mut self, done: Done) -> Vec<usize> {
        let gone = match done {
            Done::Started { shard, claim, child } if self.is_current(shard, claim) => {
                self.on_started(shard, child).into_iter().collect()
            }
            Done::Ended { shard, claim } if self.is_current(shard, claim) => vec![shard],
            Done::Listed { added, children: Ok(children) } => self.on_listed(&added, &children),
            Done::Started { .. } | Done::Ended { .. } | Done::Listed { .. } | Done::Other => {
                Vec::new()
            }
        };
        for shard in &gone {
            self.shared.forget(*shard);
            self.running.remove(shard);
        }
        gone
    }

    /// Returns the shard if it couldn't be started.
    fn on_started(&mut self, shard: usize, child: Result<ChildRef, ControlError>) -> Option<usize> {
        let child = match child {
            Ok(child) => child.name().to_owned(),
            Err(error) => {
                let lease = self.shared.shard_lease(shard);
                let (lease, retry_after) = (&**lease.name(), self.shared.options().calm);
                warn!(target: "verger::lease", lease, %error, ?retry_after, "can't start the shard");
                return Some(shard);
            }
        };
        let is_ending = self.shared.with(|state| {
            let here = state.here.get_mut(&shard)?;
            here.child = Some(child);
            Some(here.phase == Phase::Ending)
        });
        if is_ending == Some(true) {
            self.stop(shard);
        }
        None
    }

    /// Returns the shards that are gone.
    fn on_listed(&mut self, added: &BTreeMap<usize, u64>, children: &[ChildInfo]) -> Vec<usize> {
        let children: BTreeMap<_, _> =
            children.iter().filter_map(|it| Some((shard_of(it.path.name())?, it))).collect();
        let current: Vec<_> = self.shared.with(|state| {
            let is_current = |(shard, claim): &(&usize, &u64)| {
                let here = state.here.get(shard);
                here.is_some_and(|it| it.claim == **claim && it.phase != Phase::Ending)
            };
            added.iter().filter(is_current).map(|(shard, _)| *shard).collect()
        });
        let mut gone = Vec::new();
        for shard in current {
            match children.get(&shard) {
                None => gone.push(shard),
                Some(child) if has_ended(child) => self.stop(shard),
                Some(_) => {}
            }
        }
        gone
    }
}

/// Returns whether the child is down, has released its lease, and doesn't start again by itself.
fn has_ended(child: &ChildInfo) -> bool {
    matches!(child.lifecycle, Lifecycle::Stopped | Lifecycle::Errored) && child.lease.is_none()
}
