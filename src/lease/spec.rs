//! The lease of a child: in its spec, and while it runs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::clock::SuspendedTime;
use super::engine::{FencingToken, LeaseEngine};
use super::guard::LeaseChange;
use super::times::{LeaseProblem, LeaseTimes};
use crate::child::{ChildSpec, Context};
use crate::exit::{Exit, Outcome};
use crate::panic::{Foreign, catch_panic};
use crate::start_of::cut;

/// The lease that a child needs in order to run.
///
/// | | default |
/// | --- | --- |
/// | [`ttl`](Self::ttl) | 15 s |
/// | [`renew_deadline`](Self::renew_deadline) | 10 s |
/// | [`retry`](Self::retry) | 2 s |
/// | [`poll`](Self::poll) | 500 ms |
/// | [`jitter`](Self::jitter) | 0.2 |
/// | [`warm_standby`](Self::warm_standby) | nothing |
/// | [`advertise`](Self::advertise) | nothing |
///
/// Set shorter times to have the child taken over sooner after its machine has failed. A child whose machine is gone
/// is taken over once the lease has expired, by default after 15 s, and a poll of the standby. After an orderly stop,
/// it is taken over at the next poll.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use std::time::Duration;
///
/// use verger::lease::Lease;
/// use verger::testing::MemoryLeases;
///
/// // In a program, this is the engine of a store that all its processes use.
/// let leases = MemoryLeases::new();
///
/// // Taken over at the latest 6.24 s after the machine of its holder has failed.
/// let lease = Lease::new("billing", leases)
///     .ttl(Duration::from_secs(6))
///     .renew_deadline(Duration::from_secs(4))
///     .retry(Duration::from_secs(1))
///     .poll(Duration::from_millis(200));
/// # drop(lease);
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a lease does nothing until it is given to a child"]
pub struct Lease {
    pub(crate) name: Arc<str>,
    pub(crate) engine: Foreign<dyn LeaseEngine>,
    pub(crate) times: LeaseTimes,
    pub(crate) on_standby: Option<StandbyHook>,
    pub(crate) suspended: SuspendedTime,
    pub(super) address: Option<Arc<str>>,
    /// Is shown each change, before the supervisor of the child.
    pub(super) watch: Option<LeaseWatch>,
}

/// See [`Lease::watch`].
pub(super) type LeaseWatch = Arc<dyn Fn(&LeaseChange) + Send + Sync>;

/// What a child does on standby. See [`Lease::warm_standby`].
pub(crate) type StandbyHook = Foreign<dyn Fn() -> Preparation + Send + Sync>;

/// What runs while the child is on standby.
pub(crate) type Preparation = Pin<Box<dyn Future<Output = Exit> + Send>>;

impl Lease {
    /// Creates the lease with this name in the store of the engine.
    ///
    /// All processes of which one is to run the child give it the same name.
    pub fn new(name: impl Into<Arc<str>>, engine: impl LeaseEngine) -> Self {
        Self {
            name: name.into(),
            engine: Foreign::new(Arc::new(engine)),
            times: LeaseTimes::default(),
            on_standby: None,
            suspended: SuspendedTime::default(),
            address: None,
            watch: None,
        }
    }

    /// Sets how long the lease lasts after the last request that the store has received. Default: 15 s.
    ///
    /// A child whose machine is gone is taken over after this time. It must be the same in all processes.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.times.ttl = ttl;
        self
    }

    /// Sets how long after the last renewal the child is cancelled. Default: 10 s.
    ///
    /// It counts from before the request was sent, and has to be below the [`ttl`](Self::ttl). The child has the time
    /// between the two to end. The time for which the machine was suspended counts as well, on Linux.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.times.renew_deadline = deadline;
        self
    }

    /// Sets the time from one request to renew to the next. Default: 2 s.
    ///
    /// A request that isn't answered within a third of the [`renew_deadline`](Self::renew_deadline) is dropped, and
    /// counts as not renewed. After a request that takes longer than `retry`, the next one follows at once.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.times.retry = retry;
        self
    }

    /// Sets the time from one request of a standby to the next. Default: 500 ms.
    ///
    /// While the engine fails, it is twice as long after each request, up to 10 s.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.times.poll = poll;
        self
    }

    /// Sets how much [`retry`](Self::retry) and [`poll`](Self::poll) are lengthened at random. Default: 0.2.
    ///
    /// Up to this fraction of them is added, so that processes that have started together don't all send their
    /// requests at the same moment. Turn it off with 0.0 in a test that asserts exact times.
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.times.jitter = fraction;
        self
    }

    /// Runs an async function each time the child goes on standby, so that it is ready sooner once the lease is granted.
    ///
    /// Use it to fill a cache or to open connections, for example. It begins when a different holder is known to have
    /// the lease, and not before a lease that is granted at once. It runs once in each standby, beside the requests
    /// for the lease, and in the same task: it must not block.
    ///
    /// The future is dropped when the lease is granted, and when the child stops. An error or a panic is a warning
    /// in the log, with target `verger::lease`, and has no other effect.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// use std::sync::Arc;
    ///
    /// use verger::lease::Lease;
    /// use verger::testing::MemoryLeases;
    ///
    /// #[derive(Default)]
    /// struct Prices {/* … */}
    ///
    /// impl Prices {
    ///     async fn load(&self) -> Result<(), std::io::Error> {
    ///         // Read them from the database.
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let prices = Arc::new(Prices::default());
    /// let lease = Lease::new("pricing", MemoryLeases::new()).warm_standby(move || {
    ///     let prices = Arc::clone(&prices);
    ///     async move { prices.load().await }
    /// });
    /// # drop(lease);
    /// # }
    /// ```
    pub fn warm_standby<F, Fut, O>(mut self, prepare: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome + 'static,
    {
        let prepare = move || {
            let future = prepare();
            Box::pin(async move { future.await.into_exit() }) as Preparation
        };
        self.on_standby = Some(Foreign::new(Arc::new(prepare)));
        self
    }

    /// Sets the address under which the holder of the lease can be reached, for those who see who has it.
    ///
    /// It becomes a part of the holder's name in the store, `address=10.0.0.7:8080 web-1/4711-5f2c08aa:app/billing`, so it
    /// needs no other place, and belongs to the holder for exactly as long as the lease does. A standby reads it with
    /// [`Owner::of`](super::Owner::of) from [`LeaseInfo::holder`](crate::status::LeaseInfo::holder). It may be anything
    /// without a space, such as a URL.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// use verger::lease::Lease;
    /// use verger::testing::MemoryLeases;
    ///
    /// let lease = Lease::new("billing", MemoryLeases::new()).advertise("10.0.0.7:8080");
    /// # drop(lease);
    /// # }
    /// ```
    pub fn advertise(mut self, address: impl Into<Arc<str>>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Returns this lease with a different name.
    pub(super) fn named(&self, name: String) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Shows each change to this function.
    pub(super) fn watch(mut self, watch: LeaseWatch) -> Self {
        self.watch = Some(watch);
        self
    }

    pub(crate) fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Checks the name and the times.
    ///
    /// # Errors
    ///
    /// [`LeaseProblem`] names the first value that is invalid.
    pub(crate) fn check(&self) -> Result<(), LeaseProblem> {
        if self.name.is_empty() {
            return Err(LeaseProblem::NoName);
        }
        if let Some(address) = &self.address
            && (address.is_empty() || address.contains(char::is_whitespace))
        {
            return Err(LeaseProblem::Address { address: address.to_string() });
        }
        self.times.check()
    }

    /// Checks that a job can make up for missed runs.
    ///
    /// # Errors
    ///
    /// If the engine can't store the time of the last one.
    pub(crate) fn check_memos(&self) -> Result<(), LeaseProblem> {
        if self.engine.stores_memos() {
            return Ok(());
        }
        let engine = catch_panic(|| format!("{:?}", &*self.engine)).unwrap_or_default();
        Err(LeaseProblem::NoMemo { engine: cut(engine), lease: self.name.to_string() })
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.name)
            .field("engine", &&*self.engine)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl ChildSpec {
    /// Runs the child only while this lease is granted, so that it runs on one machine at a time.
    ///
    /// Until then the child is on *standby*: [`Discovered`](crate::Lifecycle::Discovered), and
    /// [ready](crate::status::ChildInfo::ready). Its siblings start without it, and restart without it. A child that
    /// requires it waits, and is ready as well.
    ///
    /// If the lease is lost, or can't be renewed in time, this child alone is stopped, whatever the strategy of its
    /// supervisor, and is on standby again. That is no failure and costs no restart. What must never run without the
    /// lease belongs below a supervisor that has it.
    ///
    /// The lease is kept while the child waits for a restart. It is given back once the child has ended for good: when
    /// it has finished, was stopped or given up, or when its supervisor ends. The lease of a child that has leaked
    /// expires instead.
    ///
    /// The child has to be down before the lease expires. Its [`shutdown`](Self::shutdown) grace must fit between the
    /// lease's [`renew_deadline`](crate::lease::Lease::renew_deadline) and its [`ttl`](crate::lease::Lease::ttl), less
    /// the [`leak_timeout`](crate::SupervisorBuilder::leak_timeout) of its supervisor; `build` refuses one that is
    /// longer. A grace that isn't set is shortened to that.
    ///
    /// [`Context::fencing_token`](crate::Context::fencing_token) has the number of the grant.
    pub fn lease(mut self, lease: Lease) -> Self {
        self.edit().lease_grace = Some(lease.times.grace());
        self.lease = Some(Arc::new(lease));
        self
    }
}

impl Context {
    /// Returns the fencing token of the [lease](crate::ChildSpec::lease) that this incarnation was started with: that of
    /// the child, or of the nearest supervisor above that has one. `None` if none of them has a lease.
    ///
    /// Send it with each write to a resource that several processes may write to, and let the resource refuse a write
    /// with a lower token than it has seen.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// use verger::lease::Lease;
    /// use verger::testing::MemoryLeases;
    /// use verger::{Context, Exit, worker};
    ///
    /// async fn scheduler(ctx: Context) -> Exit {
    ///     let token = ctx.fencing_token().expect("the spec has a lease");
    ///     println!("INSERT INTO runs (epoch) VALUES ({token})");
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// let spec = worker("scheduler", scheduler).lease(Lease::new("scheduler", MemoryLeases::new()));
    /// # drop(spec);
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.token_of_lease()
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::testing::MemoryLeases;

    #[test]
    fn a_lease_has_a_name_and_valid_times() {
        let lease = |name: &str| Lease::new(name, MemoryLeases::new());
        assert_eq!(lease("a").check(), Ok(()));
        let problem = lease("").check().unwrap_err();
        assert_eq!(
            problem.to_string(),
            "the name of the lease is empty; write a name such as `billing`"
        );
        let problem = lease("a").ttl(Duration::ZERO).check().unwrap_err();
        assert!(matches!(problem, LeaseProblem::Zero { option: "ttl", .. }), "{problem}");
    }

    #[test]
    fn each_time_is_set_by_its_call() {
        let secs = Duration::from_secs;
        let lease = Lease::new("a", MemoryLeases::new()).ttl(secs(5)).renew_deadline(secs(4));
        let lease = lease.retry(secs(3)).poll(secs(2)).jitter(0.1).warm_standby(async || {});
        let times = LeaseTimes {
            ttl: secs(5),
            renew_deadline: secs(4),
            retry: secs(3),
            poll: secs(2),
            jitter: 0.1,
        };
        assert_eq!(lease.times, times);
        assert!(lease.on_standby.is_some());
        assert!(format!("{lease:?}").starts_with("Lease { name: \"a\", engine: MemoryLeases"));
    }
}
