//! Faults, and the wrapper around every child of a tree under test that lets them strike.
//!
//! The engine knows nothing of this: a wrapped child is a child like any other, which asks a shared
//! table before it starts, and is not polled any more once the table says that it hangs. The table
//! also knows which incarnations are there, so that none can be left without being noticed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use async_trait::async_trait;

use crate::child::{
    Child, ChildSpec, Context, Function, Nested, Recipe, Resolved, Seed, Source, object_of,
    recipe_of,
};
use crate::error::{BuildError, BuildWarning};
use crate::exit::{Exit, ExitError};
use crate::mailbox::MailboxControl;
use crate::path::{Path, Trail};
use crate::sync::Mutex;

type ExitFuture<'a> = Pin<Box<dyn Future<Output = Exit> + Send + 'a>>;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Faults {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// What the next starts of a child come to, by its path.
    starts: HashMap<String, VecDeque<StartFault>>,
    /// The incarnations that are there, each path's in the order in which they came.
    live: BTreeMap<(Path, u64), Life>,
    next_serial: u64,
}

#[derive(Debug)]
pub(super) enum StartFault {
    Fail(ExitError),
    Hang,
}

#[derive(Clone)]
struct Life {
    incarnation: u32,
    hangs: Arc<AtomicBool>,
}

impl Faults {
    /// Lets the start of `path` fail that comes after those that were given a fault already.
    pub(super) fn at_start(&self, path: &str, fault: StartFault) {
        self.table.lock().starts.entry(path.to_owned()).or_default().push_back(fault);
    }

    /// Lets the incarnation of `path` that came last hang. Whether there is one.
    pub(super) fn hang(&self, path: &str) -> bool {
        let table = self.table.lock();
        let mut of_path = table.live.iter().filter(|((live, _), _)| live.as_str() == path);
        let Some((_, life)) = of_path.next_back() else { return false };
        life.hangs.store(true, Ordering::Relaxed);
        true
    }

    /// The incarnations that are there, and whether they hang.
    pub(super) fn live(&self) -> Vec<(Path, u32, bool)> {
        let table = self.table.lock();
        let hangs = |life: &Life| life.hangs.load(Ordering::Relaxed);
        let live = table.live.iter();
        live.map(|((path, _), life)| (path.clone(), life.incarnation, hangs(life))).collect()
    }

    /// The children whose starts were to fail and did not come, and how many those are.
    pub(super) fn unused(&self) -> Vec<(String, usize)> {
        let table = self.table.lock();
        let mut unused: Vec<_> =
            table.starts.iter().map(|(path, starts)| (path.clone(), starts.len())).collect();
        unused.sort();
        unused
    }

    /// A child that does the same, with an ear for faults, and so for all below it.
    pub(super) fn wrap(self: &Arc<Self>, spec: ChildSpec) -> ChildSpec {
        let ChildSpec { seed, options, requires, fallback, health } = spec;
        let fallback = fallback.map(|spec| Arc::new(self.wrap(ChildSpec::clone(&spec))));
        ChildSpec { seed: self.wrap_seed(seed), options, requires, fallback, health }
    }

    fn wrap_seed(self: &Arc<Self>, seed: Arc<Seed>) -> Arc<Seed> {
        let faults = Arc::clone(self);
        let recipe = match seed.recipe() {
            Recipe::Function(function) => {
                let function = Arc::clone(function);
                recipe_of(Original(Arc::clone(&seed)), move |_, ctx| {
                    Ok(run_function(Arc::clone(&faults), Arc::clone(&function), ctx))
                })
            }
            Recipe::Object(_) => {
                object_of(Original(Arc::clone(&seed)), move |Original(seed), ctx| {
                    let Recipe::Object(factory) = seed.recipe() else {
                        unreachable!("matched above")
                    };
                    let (child, faults) = (factory.make(ctx)?, Arc::clone(&faults));
                    Ok(Box::new(Wrapped { child, guard: None, faults }))
                })
            }
            Recipe::Nested(nested) => {
                let inner = nested.map(&|child| faults.wrap(child));
                Recipe::Nested(Box::new(WrappedNest { inner, faults }))
            }
        };
        Arc::new(Seed::new(Arc::clone(&seed.name), recipe))
    }

    /// Takes a new incarnation into the table.
    fn begin(self: &Arc<Self>, ctx: &Context) -> Guard {
        let path = ctx.path();
        let life = Life { incarnation: ctx.incarnation(), hangs: Arc::default() };
        let mut table = self.table.lock();
        let fault =
            table.take_fault(path.as_str()).or_else(|| table.take_fault(unnumbered(&path)?));
        let key = (path, table.next_serial);
        table.next_serial += 1;
        table.live.insert(key.clone(), life.clone());
        Guard { faults: Arc::clone(self), key, life, fault }
    }
}

impl Table {
    fn take_fault(&mut self, path: &str) -> Option<StartFault> {
        let starts = self.starts.get_mut(path)?;
        let fault = starts.pop_front();
        if starts.is_empty() {
            self.starts.remove(path);
        }
        fault
    }
}

/// The path of a dynamic child without its number, which is for any child of that name.
fn unnumbered(path: &Path) -> Option<&str> {
    path.name().rsplit_once('#')?;
    path.as_str().rsplit_once('#').map(|(path, _)| path)
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("live", &self.live()).finish_non_exhaustive()
    }
}

/// An incarnation, which is in the table for as long as this is there.
struct Guard {
    faults: Arc<Faults>,
    key: (Path, u64),
    life: Life,
    fault: Option<StartFault>,
}

impl Guard {
    /// What the start comes to before the child itself has a say.
    async fn start(&mut self) -> Exit {
        match self.fault.take() {
            None => Ok(()),
            Some(StartFault::Fail(error)) => Err(error),
            Some(StartFault::Hang) => {
                self.life.hangs.store(true, Ordering::Relaxed);
                std::future::pending().await
            }
        }
    }

    fn hangs(&self) -> bool {
        self.life.hangs.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.faults.table.lock().live.remove(&self.key);
    }
}

/// A future that is not polled any more once its child hangs.
///
/// Nobody needs to be woken for that: whatever would have been done next is not done, whoever wakes
/// the task to do it, a request to stop included.
struct Hangable<'a> {
    guard: Option<&'a Guard>,
    future: ExitFuture<'a>,
}

impl Future for Hangable<'_> {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        if self.guard.is_some_and(Guard::hangs) {
            return Poll::Pending;
        }
        self.future.as_mut().poll(cx)
    }
}

/// What a wrapped child is made from.
struct Original(Arc<Seed>);

impl Source for Original {
    fn type_name(&self) -> Option<&'static str> {
        self.0.type_name()
    }

    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        self.0.mailbox()
    }

    fn lends(&self) -> bool {
        self.0.lends()
    }

    fn children(&self) -> &[ChildSpec] {
        self.0.children()
    }
}

async fn run_function(faults: Arc<Faults>, function: Arc<dyn Function>, ctx: Context) -> Exit {
    let mut guard = faults.begin(&ctx);
    guard.start().await?;
    Hangable { guard: Some(&guard), future: function.call(ctx) }.await
}

struct Wrapped {
    // Dropped before the guard: it is there until it is gone.
    child: Box<dyn Child>,
    guard: Option<Guard>,
    faults: Arc<Faults>,
}

#[async_trait]
impl Child for Wrapped {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        let guard = self.guard.insert(self.faults.begin(ctx));
        guard.start().await?;
        Hangable { guard: Some(guard), future: self.child.activate(ctx) }.await
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        Hangable { guard: self.guard.as_ref(), future: self.child.run(ctx) }.await
    }

    async fn deactivate(&mut self, ctx: &Context) -> Exit {
        Hangable { guard: self.guard.as_ref(), future: self.child.deactivate(ctx) }.await
    }
}

/// A description whose supervisor is wrapped as well, once it is resolved.
struct WrappedNest {
    inner: Box<dyn Nested>,
    faults: Arc<Faults>,
}

impl Nested for WrappedNest {
    fn children(&self) -> &[ChildSpec] {
        self.inner.children()
    }

    fn check(&self, path: &Trail) -> Result<(), BuildError> {
        self.inner.check(path)
    }

    fn resolve(
        &self,
        path: &Trail,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError> {
        let Resolved { seed, abort_bound } = self.inner.resolve(path, children, warnings)?;
        Ok(Resolved { seed: self.faults.wrap_seed(seed), abort_bound })
    }

    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Box<dyn Nested> {
        let faults = Arc::clone(&self.faults);
        Box::new(Self { inner: self.inner.map(change), faults })
    }
}
