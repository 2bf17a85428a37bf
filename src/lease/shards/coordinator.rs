//! Carries out what a member decides: keeps its slot, asks for leases, starts and stops shards.
//!
//! # Invariants
//!
//! 1. The rules make all decisions. The coordinator reads the clock for them.
//! 2. Shards are children of a supervisor beside the coordinator, so they run on while it restarts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::oneshot;
use tokio::time::{sleep_until, timeout};

use super::children::ShardChildren;
use super::member::{Member, Seen, ShardStep};
use super::shared::{Notice, Shared};
use super::table::Table;
use crate::child::Context;
use crate::clock::{later, now};
use crate::exit::{Exit, ExitError};
use crate::handle::SupervisorHandle;
use crate::lease::keeper::{EngineCall, keep};
use crate::lease::{Acquired, Claim, Lease, LeaseChange, LeaseEnd, LeaseError, Owner, holder};
use crate::path::Path;

/// From one look at the children to the next. It finds those that have ended by themselves.
const LIST: Duration = Duration::from_secs(5);

type Request = Pin<Box<dyn Future<Output = Sight> + Send>>;

/// Runs a member until it is cancelled.
///
/// # Errors
///
/// If the lease has an invalid value, or the supervisor of the shards doesn't run.
pub(super) async fn coordinate(ctx: Context, shared: Arc<Shared>) -> Exit {
    shared.lease.check()?;
    let Some(supervisor) = shared.supervisor() else {
        return Err("the supervisor of the shards doesn't run".into());
    };
    let mut coordinator = Coordinator::new(&ctx, shared, supervisor);
    for (shard, is_granted) in coordinator.children.adopt().await? {
        coordinator.member.adopt(shard, is_granted);
    }
    coordinator.run(&ctx).await;
    coordinator.end().await;
    Ok(())
}

struct Coordinator {
    shared: Arc<Shared>,
    children: ShardChildren,
    member: Member,
    path: Path,
    /// The name under which the member keeps its slot.
    holder: Arc<str>,
    slot: Option<Slot>,
    request: Option<Request>,
    asked: Option<ShardStep>,
    notices: UnboundedReceiver<Notice>,
    list_at: Instant,
    /// What was shown last: the slot, and how many members and shards there are.
    shown: Option<(Option<usize>, usize, usize)>,
}

/// The slot of the member, which it keeps.
struct Slot {
    /// Receives a value if another member has the lease of the slot.
    lost: UnboundedReceiver<()>,
    end: oneshot::Sender<LeaseEnd>,
    keeping: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Coordinator {
    fn new(ctx: &Context, shared: Arc<Shared>, supervisor: SupervisorHandle) -> Self {
        let (sender, notices) = mpsc::unbounded_channel();
        shared.listen(sender);
        let table = Arc::new(Table::new(shared.shards.get()));
        let max_members = shared.options().max_members;
        Self {
            children: ShardChildren::new(Arc::clone(&shared), supervisor),
            member: Member::new(table, shared.times(), max_members, now()),
            holder: holder(&ctx.path(), 0, shared.lease.address()),
            path: ctx.path(),
            shared,
            slot: None,
            request: None,
            asked: None,
            notices,
            list_at: later(now(), LIST),
            shown: None,
        }
    }

    async fn run(&mut self, ctx: &Context) {
        loop {
            let wake = loop {
                match self.member.step(now()) {
                    ShardStep::Wait(until) => break until.min(self.list_at),
                    ShardStep::Rest => break self.list_at,
                    step => self.carry_out(step),
                }
            };
            self.show(ctx);
            tokio::select! {
                biased;
                () = ctx.cancelled() => return,
                Some(notice) = self.notices.recv() => self.on_notice(notice),
                () = kept(&mut self.slot) => self.lose_slot(),
                sight = answered(&mut self.request) => self.on_sight(&sight),
                done = self.children.next() => {
                    for shard in self.children.on_done(done) {
                        self.member.on_gone(shard, now());
                    }
                }
                () = sleep_until(wake.into()) => {
                    if now() >= self.list_at {
                        self.list_at = later(now(), LIST);
                        self.children.list();
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, step: ShardStep) {
        match step {
            ShardStep::Join(slot) => {
                let holder = Arc::clone(&self.holder);
                self.ask(step, Box::pin(join(self.shared.slot_lease(slot), holder)));
            }
            ShardStep::Look(slot) => {
                self.ask(step, Box::pin(look(self.shared.slot_lease(slot))));
            }
            ShardStep::Find(shard) => {
                self.ask(step, Box::pin(look(self.shared.shard_lease(shard))));
            }
            ShardStep::Claim(shard) => self.children.start(shard),
            ShardStep::Withdraw(shard) | ShardStep::Drain(shard) => self.children.stop(shard),
            ShardStep::Wait(_) | ShardStep::Rest => {}
        }
    }

    fn ask(&mut self, step: ShardStep, request: Request) {
        self.asked = Some(step);
        self.request = Some(request);
    }

    fn on_sight(&mut self, sight: &Sight) {
        let seen = match (self.asked.take(), &sight.holder) {
            (Some(ShardStep::Join(slot)), _) if sight.seen == Seen::Mine => {
                self.keep_slot(slot);
                Seen::Mine
            }
            (Some(ShardStep::Find(_)), Some(holder)) if self.shared.is_own(holder) => Seen::Mine,
            (Some(ShardStep::Join(slot) | ShardStep::Look(slot)), holder) => {
                let owner = holder.clone().map(Owner::of);
                self.shared.with(|state| match sight.seen {
                    Seen::Taken => drop(state.members.insert(slot, owner)),
                    Seen::Free => drop(state.members.remove(&slot)),
                    Seen::Mine | Seen::Unknown => {}
                });
                sight.seen
            }
            _ => sight.seen,
        };
        self.member.on_seen(seen, now());
    }

    /// Renews the lease of the slot, which was granted a moment ago.
    fn keep_slot(&mut self, slot: usize) {
        let (end, ended) = oneshot::channel();
        let (sender, lost) = mpsc::unbounded_channel();
        let report = move |change| {
            if matches!(change, LeaseChange::Standby { problem: None, .. } | LeaseChange::Lost(_)) {
                // A coordinator that has ended keeps no slot.
                let _ = sender.send(());
            }
        };
        let (lease, holder) = (self.shared.slot_lease(slot), Arc::clone(&self.holder));
        let keeping = Box::pin(keep(lease, self.path.clone(), holder, ended, report));
        self.slot = Some(Slot { lost, end, keeping });
    }

    fn lose_slot(&mut self) {
        self.slot = None;
        self.shared.with(|state| state.members.clear());
        self.member.on_slot_lost(now());
    }

    fn on_notice(&mut self, Notice { shard, claim, is_granted }: Notice) {
        if !self.children.on_lease(shard, claim, is_granted) {
            return;
        }
        if is_granted {
            self.member.on_granted(shard);
        } else {
            self.member.on_standby(shard);
        }
    }

    /// Shows what a reader of the status needs.
    fn show(&mut self, ctx: &Context) {
        let (own, members) = match self.member.view() {
            Some(view) => (self.member.share().map(|share| (view.own(), share)), view.members()),
            None => (None, 0),
        };
        self.shared.with(|state| state.own = own);
        let running = self.children.running();
        let shown = (own.map(|(slot, _)| slot), members, running);
        if self.shown.replace(shown) == Some(shown) {
            return;
        }
        let shards = self.shared.shards;
        ctx.set_status(match own {
            Some((slot, _)) => {
                format!("slot {slot}, members: {members}, shards here: {running} of {shards}")
            }
            None => format!("no slot, shards here: {running} of {shards}"),
        });
    }

    /// Releases the slot, so that others take over the shards, which end next.
    async fn end(self) {
        self.shared.with(|state| {
            state.own = None;
            state.members.clear();
        });
        if let Some(Slot { end, keeping, .. }) = self.slot {
            // A keeper that has ended has lost the lease.
            let _ = end.send(LeaseEnd::Release);
            keeping.await;
        }
    }
}

/// Waits until the slot is lost. Forever if there is none. Cancel safe.
async fn kept(slot: &mut Option<Slot>) {
    let Some(Slot { lost, keeping, .. }) = slot else { return std::future::pending().await };
    tokio::select! {
        biased;
        Some(()) = lost.recv() => {}
        () = keeping => {}
    }
}

/// Waits for the answer to the request in flight. Forever if there is none. Cancel safe.
async fn answered(request: &mut Option<Request>) -> Sight {
    let Some(pending) = request else { return std::future::pending().await };
    let sight = pending.await;
    *request = None;
    sight
}

/// What a request has shown.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) seen: Seen,
    /// Who has the lease, if it is taken and the engine knows that.
    pub(super) holder: Option<Arc<str>>,
    /// Why the answer is unknown, if it is.
    pub(super) problem: Option<Arc<str>>,
}

/// Requests the lease for a holder that keeps it.
async fn join(lease: Lease, holder: Arc<str>) -> Sight {
    let claim = Claim::new(Arc::clone(lease.name()), holder, lease.times.ttl);
    let engine = lease.engine.clone();
    let request = async move {
        Ok(match engine.acquire(&claim).await? {
            Acquired::Granted(_) => (Seen::Mine, None),
            Acquired::Held { by } => (Seen::Taken, by),
        })
    };
    in_time(&lease, request).await
}

/// Looks who has the lease. Cancel safe: it changes nothing in the store.
pub(super) async fn look(lease: Lease) -> Sight {
    let (engine, name) = (lease.engine.clone(), Arc::clone(lease.name()));
    let request = async move {
        let record = engine.holder(&name).await?;
        let seen = if record.is_held() { Seen::Taken } else { Seen::Free };
        Ok((seen, record.holder().filter(|_| record.is_held()).cloned()))
    };
    in_time(&lease, request).await
}

/// Waits for the answer to a request, and who has the lease. An error, a panic or no answer is unknown.
async fn in_time(
    lease: &Lease,
    request: impl Future<Output = Result<(Seen, Option<Arc<str>>), LeaseError>> + Send + 'static,
) -> Sight {
    let within = lease.times.request_timeout();
    // The message is made in the call, which also catches the panic of a source.
    let call = async { request.await.map_err(|error| ExitError::from(error).to_string()) };
    let problem = match timeout(within, EngineCall::new(call)).await {
        Ok(Ok(Ok((seen, holder)))) => return Sight { seen, holder, problem: None },
        Ok(Ok(Err(problem))) => problem,
        Ok(Err(panic)) => format!("the engine panicked: {panic}"),
        Err(_elapsed) => format!("no answer within {within:?}"),
    };
    Sight { seen: Seen::Unknown, holder: None, problem: Some(problem.into()) }
}
