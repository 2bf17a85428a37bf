//! Children made from functions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use pin_project_lite::pin_project;

use super::context::Context;
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::ExitFuture;
use crate::exit::{Exit, ExitError, Outcome};
use crate::panic::Foreign;
use crate::policy::RestartType;
use crate::sync::Mutex;

/// Describes a child that is an `async fn`.
///
/// The function is called once for each incarnation. It returns `()` or a `Result<(), E>` with any
/// error type: see [`Outcome`]. The child is ready as soon as its task is spawned, unless the spec
/// sets [`Readiness::Signal`](crate::Readiness::Signal).
///
/// A closure is called again for each incarnation, so it must not move a captured value into its
/// future. The compiler reports that the closure isn't `Fn`, or that it "captures state from its
/// environment". Pass the value to [`worker_with`], or clone it in each call:
/// `move |ctx| { let state = state.clone(); async move { … } }`. An async closure that uses `?` must
/// name its return type: `async |ctx| -> Exit { … }`.
///
/// ```
/// use verger::{Context, Exit, worker};
///
/// async fn clock(ctx: Context) -> Exit {
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// let spec = worker("clock", clock);
/// # drop(spec);
/// ```
#[track_caller]
pub fn worker<F, Fut, O>(name: impl Into<String>, run: F) -> ChildSpec
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    ChildSpec::new(name.into(), function_kind(TypeMeta::of::<F>(), move |_, ctx| Ok(run(ctx))))
}

/// Describes a child that is an `async fn` with state, which is cloned for each incarnation.
///
/// ```
/// use std::sync::Arc;
/// use verger::{Exit, worker_with};
///
/// let greeting: Arc<str> = "hello".into();
/// let spec = worker_with("greeter", greeting, async |ctx, greeting| -> Exit {
///     println!("{greeting} from {}", ctx.path());
///     Ok(())
/// });
/// # drop(spec);
/// ```
#[track_caller]
pub fn worker_with<S, F, Fut, O>(name: impl Into<String>, state: S, run: F) -> ChildSpec
where
    S: Clone + Send + Sync + 'static,
    F: Fn(Context, S) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let begin = move |_: &_, ctx| Ok(run(ctx, state.clone()));
    ChildSpec::new(name.into(), function_kind(TypeMeta::of::<F>(), begin))
}

/// Describes a child that has one incarnation, and owns what its function has captured.
///
/// The function is called once, so it can move a captured value, such as a socket, into its future:
///
/// ```
/// use tokio::io::AsyncWriteExt;
/// use tokio::net::TcpStream;
/// use verger::{ChildSpec, Exit, once};
///
/// fn connection(mut socket: TcpStream) -> ChildSpec {
///     once("conn", async move |ctx| -> Exit {
///         socket.write_all(format!("hello from {}", ctx.path()).as_bytes()).await?;
///         Ok(())
///     })
/// }
/// # drop(connection);
/// ```
///
/// The child is [temporary](crate::RestartType::Temporary) and can't be anything else: a policy that it sets
/// itself has no effect. A restart of its group
/// forgets it once it has begun; one that still waits to be started keeps its function and starts with the
/// group. Clones of the spec share the function. A second start, by a clone or after a restart of the
/// supervisor, fails with an error that says so.
///
/// Under a running dynamic supervisor, [`start_once`](crate::SupervisorHandle::start_once) does the same in
/// one call.
#[track_caller]
pub fn once<F, Fut, O>(name: impl Into<String>, run: F) -> ChildSpec
where
    F: FnOnce(Context) -> Fut + Send + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let run = Mutex::new(Some(run));
    let begin = move |_: &_, ctx: Context| {
        let run = run.lock().take();
        run.map(|run| run(ctx.clone())).ok_or_else(|| {
            let path = ctx.path();
            format!("`{path}` is made by `once`, and its function was called before").into()
        })
    };
    let mut spec = ChildSpec::new(name.into(), function_kind(TypeMeta::of::<F>(), begin));
    let options = spec.edit();
    (options.facts.once, options.values.policy.restart) =
        (true, Some(RestartType::Temporary.into()));
    spec
}

/// What is known of a child that is made from a type or function: its name. Not generic, so that a program doesn't compile
/// all of [`ChildMeta`] for each of its children.
pub(crate) struct TypeMeta(fn() -> &'static str);

impl TypeMeta {
    pub(crate) fn of<T: ?Sized>() -> Self {
        Self(std::any::type_name::<T>)
    }
}

impl ChildMeta for TypeMeta {
    fn type_name(&self) -> Option<&'static str> {
        Some((self.0)())
    }
}

/// Returns a factory whose incarnations are the futures that `begin` returns.
pub(crate) fn function_kind<M, B, F>(meta: M, begin: B) -> FactoryKind
where
    M: ChildMeta,
    B: Fn(&M, Context) -> Result<F, ExitError> + Send + Sync + 'static,
    F: Future<Output: Outcome + 'static> + Send + 'static,
{
    FactoryKind::Function(Foreign::new(Arc::new(FunctionFactory { meta, begin })))
}

struct FunctionFactory<M, B> {
    meta: M,
    begin: B,
}

impl<M, B, F> IncarnationFactory for FunctionFactory<M, B>
where
    M: ChildMeta,
    B: Fn(&M, Context) -> Result<F, ExitError> + Send + Sync + 'static,
    F: Future<Output: Outcome + 'static> + Send + 'static,
{
    fn life(self: Arc<Self>, ctx: Context, _phases: Phases) -> ExitFuture {
        Box::pin(FunctionLife::New { factory: self, ctx: Some(ctx) })
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
}

pin_project! {
    /// The life of a child that is a function, which is called in the first poll.
    ///
    /// An async block would drop `F` before it resolves, and a panic in that would hide the exit.
    #[project = FunctionLifeState]
    enum FunctionLife<M, B, F> {
        New { factory: Arc<FunctionFactory<M, B>>, ctx: Option<Context> },
        Running { #[pin] future: F },
    }
}

impl<M, B, F> Future for FunctionLife<M, B, F>
where
    B: Fn(&M, Context) -> Result<F, ExitError>,
    F: Future<Output: Outcome>,
{
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        loop {
            let future = match self.as_mut().project() {
                FunctionLifeState::New { factory, ctx } => {
                    let ctx = ctx.take().expect("the function is called once");
                    (factory.begin)(&factory.meta, ctx)?
                }
                FunctionLifeState::Running { future } => {
                    return future.poll(cx).map(Outcome::into_exit);
                }
            };
            self.set(Self::Running { future });
        }
    }
}
