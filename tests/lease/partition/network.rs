//! Members and a store on simulated hosts, and what is done to them and to the network between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::Notify;
use tokio::time::sleep;
use turmoil::{Builder, Sim};
use verger::lease::Lease;
use verger::{Context, Exit, RunError, Supervisor, worker};

use super::record::{Record, nanos};
use super::store::{Plant, Remote, STORE, Store};
use crate::shared::checker::history::Nanos;

pub(crate) const MEMBERS: u32 = 3;
pub(crate) const TTL: Duration = Duration::from_secs(6);
const RENEW_DEADLINE: Duration = Duration::from_secs(4);
const RETRY: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(200);
/// Short, so that a child that has to be aborted runs until shortly before its lease expires.
const LEAK_TIMEOUT: Duration = Duration::from_millis(100);

/// Each host runs for this long before the next one does.
const TICK: Duration = Duration::from_millis(20);
const LATENCY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(60)];
/// Of a link that delays. An answer that takes twice this long comes in time.
const LONG_LATENCY: Duration = Duration::from_millis(640);
/// How long it may take until one member runs, once all faults are over: the lease expires, and a standby asks for it.
pub(crate) const SETTLES_WITHIN: Duration = TTL.saturating_add(RETRY);
/// For how long it is checked that this doesn't change then.
const STAYS_FOR: Duration = Duration::from_millis(600);

/// What goes wrong for a host, with the network between it and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing arrives in either direction.
    Cut,
    LosesRequests,
    LosesAnswers,
    /// All that is sent arrives when the fault is over.
    Hold,
    /// What is sent arrives late.
    Delay,
    /// The link fails and recovers at random.
    Flaky,
    /// The host crashes, and starts again.
    Crash,
    /// The member stops in order, and starts again.
    Stop,
}

const FAULTS: [Fault; 8] = [
    Fault::Cut,
    Fault::LosesRequests,
    Fault::LosesAnswers,
    Fault::Hold,
    Fault::Delay,
    Fault::Flaky,
    Fault::Crash,
    Fault::Stop,
];

/// See the [module](self).
pub(crate) struct Network {
    sim: Sim<'static>,
    pub(crate) record: Record,
    stops: Vec<Arc<Notify>>,
    pub(crate) random: Rng,
    /// How many faults there were.
    pub(crate) faults: u64,
}

impl Network {
    /// The same seed and the same calls lead to the same faults, and to almost the same history.
    pub(crate) fn new(seed: u64, plant: Option<Plant>) -> Self {
        // The jitter of a guard comes from the generator of its thread.
        fastrand::seed(seed);
        let mut builder = Builder::new();
        builder.rng_seed(seed).tick_duration(TICK).tcp_capacity(4_096);
        builder.min_message_latency(LATENCY[0]).max_message_latency(LATENCY[1]).repair_rate(0.3);
        builder.simulation_duration(Duration::from_secs(100_000));
        let (mut sim, record) = (builder.build(), Record::default());
        let store = Store::new(record.clone());
        sim.host(STORE, move || store.clone().serve());
        let mut stops = Vec::new();
        for number in 1..=MEMBERS {
            let (starts, stop) = (AtomicU32::new(0), Arc::<Notify>::default());
            stops.push(Arc::clone(&stop));
            let record = record.clone();
            sim.host(host(number), move || {
                // A member that has started again is a different holder.
                let name = format!("member-{number}-{}", starts.fetch_add(1, Ordering::Relaxed));
                member(number, name, record.clone(), plant, Arc::clone(&stop))
            });
        }
        Self { sim, record, stops, random: Rng::with_seed(seed), faults: 0 }
    }

    /// Runs all hosts for this time.
    pub(crate) fn run_for(&mut self, time: Duration) {
        self.until(time, |_| false);
    }

    /// Runs all hosts until it is so, and returns whether it was within this time.
    fn until(&mut self, within: Duration, is_so: impl Fn(&Record) -> bool) -> bool {
        let end = self.sim.elapsed() + within;
        while !is_so(&self.record) {
            if self.sim.elapsed() >= end {
                return false;
            }
            self.sim.step().expect("no host fails");
        }
        true
    }

    /// Waits until exactly one member runs, and returns it. Notes if that takes too long or doesn't stay so.
    pub(crate) fn settle(&mut self) -> u32 {
        let began = self.sim.elapsed();
        self.run_for(SETTLES_WITHIN);
        let running = self.record.running();
        let changed = self.until(STAYS_FOR, |record| record.running() != running);
        if running.len() != 1 || changed {
            let text = format!("of the members, {running:?} run a while after {began:?}");
            self.record.unexpected(text);
        }
        running.first().copied().unwrap_or(1)
    }

    /// Lets this member and some of the other hosts fail, each at a time of its own, and waits until all of that is over.
    pub(crate) fn fail_at_random(&mut self, always: u32) {
        let mut events = Vec::new();
        for member in 0..=MEMBERS {
            if member != always && self.random.bool() {
                continue;
            }
            let mut at = TTL.mul_f64(self.random.f64());
            // One fault, or two without a moment between them.
            for _ in 0..self.random.u8(1..=2) {
                // The store fails as a whole.
                let fault = if member == 0 { Fault::Crash } else { FAULTS[self.random.usize(..8)] };
                let end = at + TTL.mul_f64(0.1 + 1.5 * self.random.f64());
                events.extend([(at, member, fault, true), (end, member, fault, false)]);
                at = end;
            }
        }
        // Stable, so that the end of a fault comes before the begin of the next one.
        events.sort_by_key(|it| it.0);
        let began = self.sim.elapsed();
        for (at, member, fault, begins) in events {
            self.run_for((began + at).saturating_sub(self.sim.elapsed()));
            if begins {
                self.begin(member, fault);
            } else {
                self.end(member, fault);
            }
        }
    }

    /// Begins a fault, and returns when. The member 0 is the store.
    pub(crate) fn begin(&mut self, member: u32, fault: Fault) -> Nanos {
        self.faults += 1;
        let (at, name) = (nanos(self.sim.elapsed()), host(member));
        self.record.note(at, member, format!("-- {fault:?} begins"));
        match fault {
            Fault::Cut => self.sim.partition(name, STORE),
            Fault::LosesRequests => self.sim.partition_oneway(name, STORE),
            Fault::LosesAnswers => self.sim.partition_oneway(STORE, name),
            Fault::Hold => self.sim.hold(name, STORE),
            Fault::Delay => self.sim.set_link_latency(name, STORE, LONG_LATENCY),
            Fault::Flaky => self.sim.set_link_fail_rate(name, STORE, 0.3),
            Fault::Crash => {
                self.record.crashed(member, at);
                self.sim.crash(name);
            }
            Fault::Stop => self.stops[member as usize - 1].notify_one(),
        }
        at
    }

    /// Ends a fault.
    pub(crate) fn end(&mut self, member: u32, fault: Fault) {
        let (at, name) = (nanos(self.sim.elapsed()), host(member));
        self.record.note(at, member, format!("-- {fault:?} ends"));
        match fault {
            Fault::Cut => self.sim.repair(name, STORE),
            Fault::LosesRequests => self.sim.repair_oneway(name, STORE),
            Fault::LosesAnswers => self.sim.repair_oneway(STORE, name),
            Fault::Hold => self.sim.release(name, STORE),
            Fault::Delay => self.sim.set_link_latency(name, STORE, LATENCY[1]),
            Fault::Flaky => {
                self.sim.set_link_fail_rate(name.clone(), STORE, 0.0);
                self.sim.repair(name, STORE);
            }
            Fault::Crash => self.sim.bounce(name),
            Fault::Stop => {
                // It may take longer to stop than the fault lasts.
                self.record.crashed(member, at);
                self.sim.bounce(name);
            }
        }
    }
}

fn host(member: u32) -> String {
    if member == 0 { STORE.to_owned() } else { format!("member-{member}") }
}

/// A tree whose only child has the lease.
async fn member(
    number: u32,
    name: String,
    record: Record,
    plant: Option<Plant>,
    stop: Arc<Notify>,
) -> turmoil::Result {
    let engine = Remote::new(number, record.clone(), plant);
    let lease = Lease::new("scheduler", engine)
        .ttl(TTL)
        .renew_deadline(RENEW_DEADLINE)
        .retry(RETRY)
        .poll(POLL);
    let child = worker("scheduler", move |ctx| run(ctx, number, record.clone())).lease(lease);
    let app = Supervisor::builder(name).leak_timeout(LEAK_TIMEOUT).child(child);
    let tree = app.build()?.start().await?;
    stop.notified().await;
    match tree.stop("asked to").await {
        // A member that waits for the network misses its grace.
        Err(error) if !matches!(error, RunError::Forced { .. }) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Ends at once, within its grace, or not before it is aborted.
async fn run(ctx: Context, member: u32, record: Record) -> Exit {
    let token = ctx.fencing_token().expect("it has a lease").get();
    let _running = record.begin(member, token);
    ctx.cancelled().await;
    match fastrand::u8(..4) {
        0 => {}
        1 => sleep((TTL - RENEW_DEADLINE - LEAK_TIMEOUT).mul_f64(fastrand::f64())).await,
        _ => std::future::pending().await,
    }
    Ok(())
}
