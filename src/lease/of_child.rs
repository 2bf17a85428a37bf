//! The lease of a child: in its spec, and while it runs.

use std::sync::Arc;

use super::{FencingToken, Lease};
use crate::child::{ChildSpec, Context};

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
