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

use crate::child::{
    ChildFactory, ChildMeta, ChildSpec, Context, ExitFuture, FactoryKind, IncarnationFactory,
    Nested, Phases, Resolved,
};
use crate::error::{BuildError, BuildWarning};
use crate::exit::{Exit, ExitError};
use crate::path::{Path, Trail};
use crate::sync::Mutex;

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

    /// Wraps a child, its fallbacks and everything below, so that faults apply to them.
    pub(super) fn wrap(self: &Arc<Self>, spec: ChildSpec) -> ChildSpec {
        let ChildSpec { factory, options, requires, fallback, health } = spec;
        let fallback = fallback.map(|spec| Arc::new(self.wrap(ChildSpec::clone(&spec))));
        let factory = self.wrap_factory(&factory);
        ChildSpec { factory, options, requires, fallback, health }
    }

    fn wrap_factory(self: &Arc<Self>, factory: &ChildFactory) -> Arc<ChildFactory> {
        let faults = Arc::clone(self);
        let kind = match &factory.kind {
            FactoryKind::Function(inner) => {
                FactoryKind::Function(Arc::new(Wrapped { inner: Arc::clone(inner), faults }))
            }
            FactoryKind::Value(inner) => {
                FactoryKind::Value(Arc::new(Wrapped { inner: Arc::clone(inner), faults }))
            }
            FactoryKind::Nested(nested) => {
                let inner = nested.map(&|child| faults.wrap(child));
                FactoryKind::Nested(Arc::new(WrappedNest { inner, faults }))
            }
        };
        Arc::new(ChildFactory::new(Arc::clone(&factory.name), kind))
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
/// No wake is needed for that: the next poll does nothing, whatever caused it.
struct Hangable<'a> {
    guard: &'a Guard,
    future: ExitFuture,
}

impl Future for Hangable<'_> {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        if self.guard.hangs() {
            return Poll::Pending;
        }
        self.future.as_mut().poll(cx)
    }
}

/// A factory whose incarnations are subject to faults.
struct Wrapped {
    inner: Arc<dyn IncarnationFactory>,
    faults: Arc<Faults>,
}

impl IncarnationFactory for Wrapped {
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        Box::pin(async move {
            // Declared first, so that it outlives the child.
            let mut guard = self.faults.begin(&ctx);
            guard.start().await?;
            let future = Arc::clone(&self.inner).life(ctx, phases);
            Hangable { guard: &guard, future }.await
        })
    }

    fn meta(&self) -> &dyn ChildMeta {
        self.inner.meta()
    }
}

/// A description whose supervisor is wrapped as well, once it is resolved.
struct WrappedNest {
    inner: Arc<dyn Nested>,
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
        let Resolved { factory, abort_bound } = self.inner.resolve(path, children, warnings)?;
        Ok(Resolved { factory: self.faults.wrap_factory(&factory), abort_bound })
    }

    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Arc<dyn Nested> {
        let faults = Arc::clone(&self.faults);
        Arc::new(Self { inner: self.inner.map(change), faults })
    }
}
