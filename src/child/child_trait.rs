//! The trait of children that are values.

use async_trait::async_trait;

use super::context::Context;
use super::spec::ChildSpec;
use crate::exit::Exit;

/// A child that is a value: what a supervisor can run.
///
/// Each incarnation is a new value, made by the factory of its [`ChildSpec`]. `activate` prepares the
/// child, `run` does its work, `deactivate` cleans up. For a child that needs only `run`, an
/// `async fn` and [`worker`](fn@crate::worker) are shorter.
///
/// | what happens | then |
/// | --- | --- |
/// | `activate` returns `Ok` | the child is [`Active`](crate::Lifecycle::Active), and `run` begins |
/// | `activate` returns an error | the child has failed; `deactivate` is not called |
/// | the child is cancelled | [`Context::cancelled`] resolves; at three quarters of a finite grace `run` is dropped |
/// | `run` has returned or was dropped | `deactivate` is called, within the rest of the grace |
/// | the child panics, or is aborted | `deactivate` is not called |
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
/// `#[async_trait]` above the `impl` block, or use `#[worker]` on an `impl` block of the type, which
/// needs neither.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be run as a child",
    label = "doesn't implement `Child`",
    note = "implement `Child` for it, for example with `#[worker]` on an `impl` block, or pass an \
            `async fn` to `worker`"
)]
pub trait Child: Send + 'static {
    /// Sets the options that depend on this type, such as the time it needs to clean up. The default
    /// sets none.
    ///
    /// [`child`](crate::child) passes each new spec through this function once. Options that are set on
    /// the spec afterwards take precedence. Options that this function sets take precedence over the
    /// supervisor's [`defaults`](crate::SupervisorBuilder::defaults). It corresponds to Elixir's
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
    ///         // Flushing its buffers takes a while.
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
    /// // This one has empty buffers.
    /// let idle = child("idle", || Writer).shutdown(Duration::from_secs(1));
    /// # drop((writer, idle));
    /// ```
    fn child_spec(spec: ChildSpec) -> ChildSpec
    where
        Self: Sized,
    {
        spec
    }

    /// Prepares the child, which is ready when this returns `Ok`. The default does nothing.
    ///
    /// Return [`ExitError::ignore`](crate::ExitError::ignore) to decline to start.
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }

    /// Does the child's work until it is done or cancelled.
    async fn run(&mut self, ctx: &Context) -> Exit;

    /// Cleans up. The default does nothing.
    ///
    /// An error or a panic here is reported, and has no effect on how the child is treated.
    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }
}
