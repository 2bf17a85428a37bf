//! Children that are values: the trait, how their incarnations are made, and their life.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;

use super::cell::StopLevel;
use super::context::Context;
use super::helpers::Helpers;
use super::incarnation::Signal;
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::{ExitFuture, drop_after, panicked, with_failure};
use super::workers::TypeMeta;
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::{CatchPanic, Foreign};

/// A child that is a value: what a supervisor can run.
///
/// With `async_trait`, which generates the signatures above, the trait is:
///
/// ```
/// # use verger::{ChildSpec, Context, Exit, async_trait};
/// #[async_trait]
/// trait Child: Send + 'static {
///     // Sets the options that depend on this type. Optional.
///     fn child_spec(spec: ChildSpec) -> ChildSpec where Self: Sized { spec }
///
///     // Prepares the child, which is ready when this returns `Ok`. Optional.
///     async fn activate(&mut self, ctx: &Context) -> Exit { Ok(()) }
///
///     // Does the child's work until it is done or cancelled.
///     async fn run(&mut self, ctx: &Context) -> Exit;
///
///     // Cleans up. Optional.
///     async fn deactivate(&mut self, ctx: &Context) -> Exit { Ok(()) }
/// }
/// ```
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

/// Describes a child that is a value, made by `factory` for each incarnation.
///
/// The child is ready when its [`activate`](Child::activate) returns `Ok`. The factory is called in
/// the child's own task: a panic in it is a failure of the child. The spec starts from what the type
/// sets in [`child_spec`](Child::child_spec).
///
/// The example of [`Child`] describes one.
#[track_caller]
pub fn child<F: ChildConstructor>(name: impl Into<String>, factory: F) -> ChildSpec {
    let make = move |_: &_, _: &Context| Ok(Box::new(factory.construct()) as Box<dyn Child>);
    let meta = TypeMeta::of::<F::Child>();
    F::Child::child_spec(ChildSpec::new(name.into(), value_kind(meta, make))).layer()
}

/// A function without arguments that returns a [`Child`], for [`child`].
///
/// It is a trait so that the compiler's message about a value in its place names [`component`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function that makes a child",
    label = "`child` calls a function for each incarnation",
    note = "write `component(name, value)` for a value that is cloned for each incarnation",
    note = "or `child(name, || value)` for a value that is made for each incarnation"
)]
pub trait ChildConstructor: Send + Sync + 'static {
    /// The type of the child.
    type Child: Child;

    /// Returns the child of the next incarnation.
    fn construct(&self) -> Self::Child;
}

impl<C: Child, F: Fn() -> C + Send + Sync + 'static> ChildConstructor for F {
    type Child = C;

    fn construct(&self) -> C {
        self()
    }
}

/// A value that [`component`] turns into a child: of a type that is `Child + Clone + Sync`, or a
/// [`ChildSpec`].
///
/// ```
/// use verger::{Child, Context, Exit, Supervisor, async_trait, component};
///
/// #[derive(Clone)]
/// struct Clock {
///     zone: String,
/// }
///
/// #[async_trait]
/// impl Child for Clock {
///     async fn run(&mut self, ctx: &Context) -> Exit {
///         ctx.set_status(&self.zone);
///         ctx.cancelled().await;
///         Ok(())
///     }
/// }
///
/// let app = Supervisor::builder("app").child(component("clock", Clock { zone: "UTC".into() }));
/// # drop(app);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a child",
    label = "has to be `Child + Clone + Sync`, or a `ChildSpec`",
    note = "each incarnation is a clone of the value: implement `Child` for its type, for example \
            with `#[worker]` on an `impl` block, and derive `Clone`",
    note = "a field that is itself a supervisor is marked `#[supervisor]` instead of `#[child]`"
)]
pub trait Component {
    /// Returns the spec of the child, under this name.
    #[track_caller]
    fn into_spec(self, name: String) -> ChildSpec;
}

/// The value is a prototype: each incarnation is a clone of it.
impl<C: Child + Clone + Sync> Component for C {
    #[track_caller]
    fn into_spec(self, name: String) -> ChildSpec {
        child(name, move || self.clone())
    }
}

/// The same spec under that name.
impl Component for ChildSpec {
    fn into_spec(self, name: String) -> ChildSpec {
        self.named(name)
    }
}

/// Describes a child that is made from a value.
///
/// A value of a type that implements [`Child`] is a prototype. Each incarnation is a clone of the
/// value that you pass, so no state of a failed incarnation is left. Share what must outlive an
/// incarnation, in an `Arc` for example. The clone is made in the child's own task: a panic in it is a
/// failure of the child. The options of [`Child::child_spec`] apply.
///
/// A [`ChildSpec`] is only renamed: see [`ChildSpec::named`].
///
/// ```
/// use verger::{Child, Context, Exit, async_trait, component, worker};
///
/// #[derive(Clone)]
/// struct Greeter {
///     greeting: &'static str,
///     greeted: u32,
/// }
///
/// #[async_trait]
/// impl Child for Greeter {
///     async fn run(&mut self, ctx: &Context) -> Exit {
///         self.greeted += 1;
///         println!("{} from {}, {} so far", self.greeting, ctx.path(), self.greeted);
///         Ok(())
///     }
/// }
///
/// // Each incarnation starts with `greeted: 0`.
/// let greeter = component("greeter", Greeter { greeting: "hello", greeted: 0 });
/// let clock = component("clock", worker("any", async |ctx| ctx.cancelled().await));
/// assert_eq!(clock.name(), "clock");
/// # drop(greeter);
/// ```
#[track_caller]
pub fn component(name: impl Into<String>, value: impl Component) -> ChildSpec {
    value.into_spec(name.into())
}

/// Returns a factory whose incarnations are the values that `make` returns.
pub(crate) fn value_kind<M, G>(meta: M, make: G) -> FactoryKind
where
    M: ChildMeta,
    G: Fn(&M, &Context) -> Result<Box<dyn Child>, ExitError> + Send + Sync + 'static,
{
    FactoryKind::Value(Foreign::new(Arc::new(ValueFactory { meta, make })))
}

struct ValueFactory<M, G> {
    meta: M,
    make: G,
}

impl<M, G> IncarnationFactory for ValueFactory<M, G>
where
    M: ChildMeta,
    G: Fn(&M, &Context) -> Result<Box<dyn Child>, ExitError> + Send + Sync + 'static,
{
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        Box::pin(async move {
            let child = (self.make)(&self.meta, &ctx)?;
            live(child, ctx, phases).await
        })
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
}

/// Runs the value to its end, and drops it.
///
/// A panic is caught before it reaches the value, so that the value can be dropped safely.
pub(super) async fn live(mut child: Box<dyn Child>, ctx: Context, phases: Phases) -> Exit {
    let exit = CatchPanic(pin!(run_phases(&mut *child, &ctx, phases))).await;
    let exit = exit.unwrap_or_else(|panic| Err(panicked(panic)));
    drop_after(exit, || drop(child))
}

async fn run_phases(child: &mut dyn Child, ctx: &Context, phases: Phases) -> Exit {
    tokio::select! {
        biased;
        exit = child.activate(ctx) => exit?,
        failure = helper_failure(ctx) => return Err(failure),
    }
    if phases.signals_ready {
        ctx.incarnation.notify(Signal::Ready);
    }
    let mut overdue = pin!(overdue(ctx, phases.grace));
    let mut is_overdue = false;
    let mut exit = tokio::select! {
        biased;
        exit = child.run(ctx) => exit,
        failure = helper_failure(ctx) => Err(failure),
        () = &mut overdue => {
            is_overdue = true;
            Err(ExitError::from_reason(ExitReason::Killed))
        }
    };
    if let Some(helpers) = ctx.incarnation.helpers() {
        // Failures of helpers from now on are logged.
        exit = with_failure(&ctx.incarnation, exit, helpers.settle());
        match phases.grace.filter(|_| is_overdue) {
            Some(grace) => stop_own(&helpers, tokio::time::sleep(grace / 8)).await,
            None => stop_own(&helpers, overdue).await,
        }
    }
    let deactivated = CatchPanic(child.deactivate(ctx)).await;
    let failure = match deactivated {
        Ok(Ok(())) => None,
        // Too late to decline, but not a failure either.
        Ok(Err(error)) if error.is_ignore() => None,
        Ok(Err(error)) => Some(ExitReason::Failed(error)),
        Err(panic) => Some(ExitReason::Panicked(panic)),
    };
    if let Some(reason) = failure {
        let incarnation = Arc::clone(&ctx.incarnation);
        incarnation.parent.deactivate_failed(&incarnation, reason);
    }
    exit
}

/// Stops the child's own supervisor in order, and aborts it when `patience` has passed.
///
/// What the child has started may need what `deactivate` gives up.
async fn stop_own(helpers: &Helpers, patience: impl Future<Output = ()>) {
    let Some(own) = helpers.own_to_stop() else { return };
    own.stop(StopLevel::Cancel);
    tokio::select! {
        biased;
        () = own.until_ended() => {}
        () = patience => own.stop(StopLevel::Abort),
    }
}

/// Resolves to the failure of a helper. A poll without one is repeated when there is: the child's task is woken.
fn helper_failure(ctx: &Context) -> impl Future<Output = ExitError> {
    poll_fn(|_| {
        let failure = ctx.incarnation.helpers().and_then(|helpers| helpers.take_failure());
        failure.map_or(Poll::Pending, Poll::Ready)
    })
}

/// Resolves when three quarters of the grace have passed, which leaves the last one to `deactivate`.
async fn overdue(ctx: &Context, grace: Option<Duration>) {
    ctx.cancelled().await;
    match grace {
        Some(grace) => tokio::time::sleep(grace / 4 * 3).await,
        None => std::future::pending().await,
    }
}
