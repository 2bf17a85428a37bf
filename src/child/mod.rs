//! Children: what a supervisor runs.
//!
//! A [`Child`] is what workers and supervisors have in common. A [`ChildSpec`] says how one is made
//! and treated; a [`Context`] is what one is handed. Nothing here knows who supervises: a child
//! tells things to a [`Parent`](run::Parent) and is asked to stop through its [`Run`](run::Run).

mod cancelled;
mod component;
mod context;
mod health;
mod limits;
mod parked;
mod run;
mod seed;
mod source;
mod spec;
mod task;
mod waits;
mod worker;

use async_trait::async_trait;

pub use self::cancelled::Cancelled;
pub use self::component::{Component, component};
pub use self::context::Context;
pub use self::health::HealthCheck;
pub(crate) use self::limits::{check_intensity, check_limits, check_on_exhausted, check_twice};
pub(crate) use self::parked::{NextRun, Rest};
#[cfg(test)]
pub(crate) use self::run::alone;
pub(crate) use self::run::{Parent, Run, StopLevel};
#[cfg(feature = "testing")]
pub(crate) use self::seed::Function;
pub(crate) use self::seed::{Nested, Recipe, Resolved, Seed};
pub(crate) use self::source::Source;
pub use self::spec::{ChildDefaults, ChildSpec};
pub(crate) use self::task::{Caught, Plan, Spawned, TaskFuture};
#[cfg(feature = "testing")]
pub(crate) use self::worker::object_of;
pub(crate) use self::worker::recipe_of;
pub use self::worker::{child, child_with_mailbox, worker, worker_with, worker_with_mailbox};

use crate::exit::Exit;

/// Something that a supervisor can run.
///
/// Each incarnation is a new value, made by the factory of its [`ChildSpec`]. `activate` prepares
/// it, `run` is its life, `deactivate` tidies up. For a child that needs only one of these, an
/// `async fn` and [`worker`] are less to write.
///
/// | what happens | then |
/// | --- | --- |
/// | `activate` returns `Ok` | the child is [`Active`](crate::Lifecycle::Active), and `run` begins |
/// | `activate` returns an error | it has failed; `deactivate` is not called |
/// | it is asked to stop | [`Context::cancelled`] resolves; at three quarters of a finite grace `run` is dropped |
/// | `run` has returned or was dropped | `deactivate` is called, in what is left of the grace |
/// | it panics, or is aborted | `deactivate` is not called |
///
/// ```
/// use verger::{Child, Context, Exit, async_trait, child};
///
/// struct Pool {
///     connections: Vec<u32>,
/// }
///
/// #[async_trait]
/// impl Child for Pool {
///     async fn activate(&mut self, _ctx: &Context) -> Exit {
///         self.connections.push(1);
///         Ok(())
///     }
///
///     async fn run(&mut self, ctx: &Context) -> Exit {
///         ctx.cancelled().await;
///         Ok(())
///     }
///
///     async fn deactivate(&mut self, _ctx: &Context) -> Exit {
///         self.connections.clear();
///         Ok(())
///     }
/// }
///
/// let spec = child("pool", || Pool { connections: Vec::new() });
/// # drop(spec);
/// ```
///
/// An implementation needs `#[async_trait]`. Without it, the compiler reports E0195 for each method:
/// "lifetime parameters or bounds on method `run` do not match the trait declaration". Write
/// `#[async_trait]` above the `impl` block, or use `#[worker]` on an `impl`
/// block of the type, which needs neither.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be run as a child",
    label = "doesn't implement `Child`",
    note = "implement `Child` for it, for example with `#[worker]` on an `impl` block; what is one \
            `async fn` becomes a child by `worker`"
)]
pub trait Child: Send + 'static {
    /// What this type says of how it is treated, unless the spec says otherwise. The default says
    /// nothing.
    ///
    /// For what the type knows best, such as how long it needs to tidy up. [`child`] passes each
    /// new spec through it, once. So what is set on the spec afterwards wins over it, and it wins
    /// over the supervisor's [`defaults`](crate::SupervisorBuilder::defaults). Elixir's
    /// `child_spec/1`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use verger::{Child, ChildSpec, Context, Exit, async_trait, child};
    ///
    /// struct Writer;
    ///
    /// #[async_trait]
    /// impl Child for Writer {
    ///     fn child_spec(spec: ChildSpec) -> ChildSpec {
    ///         // What is in its buffers takes a while.
    ///         spec.shutdown(Duration::from_secs(30))
    ///     }
    ///
    ///     async fn run(&mut self, ctx: &Context) -> Exit {
    ///         ctx.cancelled().await;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let writer = child("writer", || Writer);
    /// // This one has nothing in its buffers.
    /// let idle = child("idle", || Writer).shutdown(Duration::from_secs(1));
    /// # drop((writer, idle));
    /// ```
    fn child_spec(spec: ChildSpec) -> ChildSpec
    where
        Self: Sized,
    {
        spec
    }

    /// Prepares the child. It is ready when this has returned `Ok`.
    ///
    /// [`ExitError::ignore`](crate::ExitError::ignore) declines to start. The default does nothing.
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }

    /// Does the child's work until it is done or asked to stop.
    async fn run(&mut self, ctx: &Context) -> Exit;

    /// Tidies up. An error or a panic here is reported, and changes nothing for what becomes of
    /// the child. The default does nothing.
    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }
}
