//! Children made from functions, and from values that implement [`Child`].

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use super::run::Run;
#[cfg(feature = "testing")]
use super::seed::ExitFuture;
use super::seed::{Factory, Function, Recipe};
use super::source::{Of, Source, WithMailbox};
use super::task::{TaskFuture, of_function};
use super::{Child, ChildSpec, Context};
use crate::exit::{ExitError, Outcome};
use crate::mailbox::{Inbox, Mailbox};

/// A child that is an `async fn`.
///
/// The function is called once for each incarnation, and may return `()` or a `Result<(), E>` with
/// any error type: see [`Outcome`]. It is ready as soon as it is spawned, unless the spec says
/// [`Readiness::Signal`](crate::Readiness::Signal).
///
/// A closure must not move what it captures into the future, since it is called again; the compiler
/// then says that it isn't `Fn`, or "captures state from its environment". Hand the state to
/// [`worker_with`], or clone it in each call:
/// `move |ctx| { let state = state.clone(); async move { … } }`. An async closure that uses `?` has
/// to name its return type: `async |ctx| -> Exit { … }`.
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
pub fn worker<F, Fut, O>(name: impl Into<String>, run: F) -> ChildSpec
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    ChildSpec::new(name.into(), recipe_of(Of::<F>::new(), move |_, ctx| Ok(run(ctx))))
}

/// A child that is an `async fn` with state, cloned for each incarnation.
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
pub fn worker_with<S, F, Fut, O>(name: impl Into<String>, state: S, run: F) -> ChildSpec
where
    S: Clone + Send + Sync + 'static,
    F: Fn(Context, S) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let begin = move |_: &_, ctx| Ok(run(ctx, state.clone()));
    ChildSpec::new(name.into(), recipe_of(Of::<F>::new(), begin))
}

/// A child that is a value, made anew by `factory` for each incarnation.
///
/// It is ready when its [`activate`](Child::activate) has returned `Ok`. The factory is called in
/// the child's own task: a panic in it is the child's failure. How the child is treated begins with
/// what its type says in [`child_spec`](Child::child_spec).
pub fn child<C: Child>(
    name: impl Into<String>,
    factory: impl Fn() -> C + Send + Sync + 'static,
) -> ChildSpec {
    let make = move |_: &_, _: &Context| Ok(Box::new(factory()) as Box<dyn Child>);
    C::child_spec(ChildSpec::new(name.into(), object_of(Of::<C>::new(), make))).layer()
}

/// A child that is an `async fn` with a mailbox, which each incarnation of it is lent.
///
/// The function is called once for each incarnation, as by [`worker`]. State is captured, and cloned
/// in each call. As there is one mailbox, the spec is for one child at a time: make another mailbox
/// for another child.
///
/// ```
/// use std::sync::Arc;
/// use verger::{Context, Exit, Inbox, mailbox, worker_with_mailbox};
///
/// async fn greeter(_ctx: Context, mut inbox: Inbox<String>, greeting: Arc<str>) -> Exit {
///     while let Some(name) = inbox.recv().await {
///         println!("{greeting}, {name}");
///     }
///     Ok(())
/// }
///
/// let greeting: Arc<str> = "hello".into();
/// let (address, mailbox) = mailbox(1000);
/// let run = move |ctx, inbox| greeter(ctx, inbox, greeting.clone());
/// let spec = worker_with_mailbox("greeter", mailbox, run);
/// # drop((address, spec));
/// ```
pub fn worker_with_mailbox<M, F, Fut, O>(
    name: impl Into<String>,
    mailbox: Mailbox<M>,
    run: F,
) -> ChildSpec
where
    M: Send + 'static,
    F: Fn(Context, Inbox<M>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let begin = move |source: &WithMailbox<M, F>, ctx: Context| {
        borrow(&source.mailbox, &ctx).map(|inbox| run(ctx, inbox))
    };
    ChildSpec::new(name.into(), recipe_of(WithMailbox { mailbox, of: Of::new() }, begin))
}

/// A child that is a value with a mailbox, made anew by `factory` for each incarnation, which is lent
/// the mailbox. What [`child`] says goes for it as well; the spec is for one child at a time.
///
/// ```
/// use verger::{Child, Context, Exit, Inbox, async_trait, child_with_mailbox, mailbox};
///
/// struct Greeter {
///     inbox: Inbox<String>,
/// }
///
/// #[async_trait]
/// impl Child for Greeter {
///     async fn run(&mut self, _ctx: &Context) -> Exit {
///         while let Some(name) = self.inbox.recv().await {
///             println!("hello, {name}");
///         }
///         Ok(())
///     }
/// }
///
/// let (address, mailbox) = mailbox(1000);
/// let spec = child_with_mailbox("greeter", mailbox, |inbox| Greeter { inbox });
/// # drop((address, spec));
/// ```
pub fn child_with_mailbox<M: Send + 'static, C: Child>(
    name: impl Into<String>,
    mailbox: Mailbox<M>,
    factory: impl Fn(Inbox<M>) -> C + Send + Sync + 'static,
) -> ChildSpec {
    let make = move |source: &WithMailbox<M, C>, ctx: &Context| {
        let inbox = borrow(&source.mailbox, ctx)?;
        Ok(Box::new(factory(inbox)) as Box<dyn Child>)
    };
    let recipe = object_of(WithMailbox { mailbox, of: Of::new() }, make);
    C::child_spec(ChildSpec::new(name.into(), recipe)).layer()
}

/// A function that makes the future of each incarnation, or says why it can't.
struct Worker<S, B, F> {
    source: S,
    begin: B,
    made: PhantomData<fn() -> F>,
}

/// How a child is made whose future `begin` makes, if it can.
pub(crate) fn recipe_of<S, B, F>(source: S, begin: B) -> Recipe
where
    S: Source,
    B: Fn(&S, Context) -> Result<F, ExitError> + Send + Sync + 'static,
    F: Future<Output: Outcome + 'static> + Send + 'static,
{
    Recipe::Function(Arc::new(Worker { source, begin, made: PhantomData }))
}

impl<S, B, F> Function for Worker<S, B, F>
where
    S: Source,
    B: Fn(&S, Context) -> Result<F, ExitError> + Send + Sync + 'static,
    F: Future<Output: Outcome + 'static> + Send + 'static,
{
    fn task(&self) -> fn(Arc<Run>) -> TaskFuture {
        |run| {
            // Found again when it is called: to keep it as well would be another reference to count.
            of_function(run, |run| match run.seed.recipe() {
                Recipe::Function(function) => {
                    let this =
                        function.as_any().downcast_ref::<Self>().expect("the child is made of it");
                    (this.begin)(&this.source, Context::new(Arc::clone(run)))
                }
                Recipe::Object(_) | Recipe::Nested(_) => unreachable!("it is a function"),
            })
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn source(&self) -> &dyn Source {
        &self.source
    }

    #[cfg(feature = "testing")]
    fn call(&self, ctx: Context) -> ExitFuture {
        match (self.begin)(&self.source, ctx) {
            Ok(future) => Box::pin(async move { future.await.into_exit() }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A function that makes the value of each incarnation, or says why it can't.
struct Object<S, G> {
    source: S,
    make: G,
}

/// How a child is made that `make` makes, if it can.
pub(crate) fn object_of<S, G>(source: S, make: G) -> Recipe
where
    S: Source,
    G: Fn(&S, &Context) -> Result<Box<dyn Child>, ExitError> + Send + Sync + 'static,
{
    Recipe::Object(Box::new(Object { source, make }))
}

impl<S, G> Factory for Object<S, G>
where
    S: Source,
    G: Fn(&S, &Context) -> Result<Box<dyn Child>, ExitError> + Send + Sync,
{
    fn make(&self, ctx: &Context) -> Result<Box<dyn Child>, ExitError> {
        (self.make)(&self.source, ctx)
    }

    fn source(&self) -> &dyn Source {
        &self.source
    }
}

fn borrow<M: Send + 'static>(mailbox: &Mailbox<M>, ctx: &Context) -> Result<Inbox<M>, ExitError> {
    mailbox.lend(Run::loan(&ctx.run)).map_err(|whose| {
        let owner = whose.map_or_else(|| "another child".to_owned(), |path| format!("`{path}`"));
        let path = ctx.path();
        format!("the mailbox of `{path}` belongs to {owner}; make one for each child").into()
    })
}
