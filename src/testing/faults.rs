//! Faults, and the wrapper around every child of a test tree that injects them.
//!
//! The table of a supervisor's children wraps each of them as it is added: declared ones, those that the program adds
//! later, and those below a worker. A wrapped child is an ordinary child for its supervisor. It looks up its fault in a shared table
//! before it starts, and stops polling its future once the table marks it as hanging. The table also
//! lists the incarnations that are alive, so that a test can find those that are left over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use crate::child::spec::IncarnationFactory;
use crate::child::task::ExitFuture;
use crate::child::{ChildFactory, ChildMeta, Context, FactoryKind, Phases, WrapFactory};
use crate::exit::{Exit, ExitError};
use crate::panic::Foreign;
use crate::path::Path;
use crate::sync::Mutex;

/// The faults of one tree, and its incarnations that are alive.
#[derive(Default)]
pub(super) struct Faults {
    table: Mutex<FaultTable>,
}

#[derive(Default)]
struct FaultTable {
    /// The faults of the next starts, by the path of the child.
    starts: HashMap<String, VecDeque<StartFault>>,
    /// The incarnations that are alive, by path and then in the order of their starts.
    live: BTreeMap<(Path, u64), LiveIncarnation>,
    next_serial: u64,
}

pub(super) enum StartFault {
    Fail(ExitError),
    Hang,
}

#[derive(Clone)]
struct LiveIncarnation {
    incarnation: u32,
    hangs: Arc<AtomicBool>,
}

impl Faults {
    /// Adds a fault for the next start of `path` that has none yet.
    pub(super) fn at_start(&self, path: &str, fault: StartFault) {
        self.table.lock().starts.entry(path.to_owned()).or_default().push_back(fault);
    }

    /// Makes the latest incarnation of `path` hang. Returns `false` if there is none.
    pub(super) fn hang(&self, path: &str) -> bool {
        let table = self.table.lock();
        let mut of_path = table.live.iter().filter(|((live, _), _)| live.as_str() == path);
        let Some((_, life)) = of_path.next_back() else { return false };
        life.hangs.store(true, Ordering::Relaxed);
        true
    }

    /// Returns the incarnations that are alive, and whether they hang.
    pub(super) fn live(&self) -> Vec<(Path, u32, bool)> {
        let table = self.table.lock();
        let hangs = |life: &LiveIncarnation| life.hangs.load(Ordering::Relaxed);
        let live = table.live.iter();
        live.map(|((path, _), life)| (path.clone(), life.incarnation, hangs(life))).collect()
    }

    /// Returns the children whose faults were not used, and how many each has left.
    pub(super) fn unused(&self) -> Vec<(String, usize)> {
        let table = self.table.lock();
        let mut unused: Vec<_> =
            table.starts.iter().map(|(path, starts)| (path.clone(), starts.len())).collect();
        unused.sort();
        unused
    }

    /// Adds a new incarnation to the table.
    fn register(self: &Arc<Self>, ctx: &Context) -> IncarnationGuard {
        let path = ctx.path();
        let life = LiveIncarnation { incarnation: ctx.incarnation(), hangs: Arc::default() };
        let mut table = self.table.lock();
        let fault =
            table.take_fault(path.as_str()).or_else(|| table.take_fault(unnumbered(&path)?));
        let key = (path, table.next_serial);
        table.next_serial += 1;
        table.live.insert(key.clone(), life.clone());
        IncarnationGuard { faults: Arc::clone(self), key, life, fault }
    }
}

impl FaultTable {
    fn take_fault(&mut self, path: &str) -> Option<StartFault> {
        let starts = self.starts.get_mut(path)?;
        let fault = starts.pop_front();
        if starts.is_empty() {
            self.starts.remove(path);
        }
        fault
    }
}

/// Wraps the children of a tree.
#[derive(Debug)]
pub(super) struct FaultWrapper(pub(super) Arc<Faults>);

impl WrapFactory for FaultWrapper {
    fn wrap(&self, factory: &ChildFactory) -> Arc<ChildFactory> {
        let wrapped = |inner: &Foreign<dyn IncarnationFactory>| {
            let (inner, faults) = (inner.clone(), Arc::clone(&self.0));
            Foreign::new(Arc::new(Wrapped { inner, faults }) as Arc<dyn IncarnationFactory>)
        };
        let kind = match &factory.kind {
            FactoryKind::Function(inner) => FactoryKind::Function(wrapped(inner)),
            FactoryKind::Value(inner) => FactoryKind::Value(wrapped(inner)),
            FactoryKind::Nested(_) => unreachable!("a child that runs is resolved"),
        };
        let identity = Arc::clone(&factory.identity);
        Arc::new(ChildFactory { identity, kind, defined_at: factory.defined_at })
    }
}

/// Returns the path of a dynamic child without its number, which stands for any child of that name.
pub(super) fn unnumbered(path: &Path) -> Option<&str> {
    path.name().rsplit_once('#')?;
    path.as_str().rsplit_once('#').map(|(path, _)| path)
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("live", &self.live()).finish_non_exhaustive()
    }
}

/// Keeps an incarnation in the table until it is dropped.
struct IncarnationGuard {
    faults: Arc<Faults>,
    key: (Path, u64),
    life: LiveIncarnation,
    fault: Option<StartFault>,
}

impl IncarnationGuard {
    /// Applies the fault of this start, before the child's own code runs.
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

impl Drop for IncarnationGuard {
    fn drop(&mut self) {
        self.faults.table.lock().live.remove(&self.key);
    }
}

/// A future that is no longer polled once its child hangs.
///
/// Marking a child as hanging wakes no task: the next poll, even one for a stop, does nothing.
struct Hangable<'a> {
    guard: &'a IncarnationGuard,
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
    inner: Foreign<dyn IncarnationFactory>,
    faults: Arc<Faults>,
}

impl IncarnationFactory for Wrapped {
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        Box::pin(async move {
            // Declared first, so that it outlives the child.
            let mut guard = self.faults.register(&ctx);
            guard.start().await?;
            let future = Arc::clone(self.inner.shared()).life(ctx, phases);
            Hangable { guard: &guard, future }.await
        })
    }

    fn meta(&self) -> &dyn ChildMeta {
        self.inner.meta()
    }
}
