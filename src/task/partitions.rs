//! A supervisor in partitions, the keys that belong to each of them, and the way to it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::task::coop::consume_budget;

use super::place::{Place, find};
use super::stream::parallelism;
use crate::child::ChildSpec;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::tree::Tree;
use crate::spec::{Supervisor, SupervisorBuilder};
use crate::sync::Mutex;

/// A supervisor of several supervisors of the same kind, of which a key selects one.
///
/// A dynamic supervisor handles its children's starts and exits one at a time. Where many callers start
/// children, divide them among partitions, which work in parallel. The partitions are children with the names
/// `0`, `1` and so on. It is modelled on Elixir's `PartitionSupervisor`.
///
/// Make the value before the tree, add its [`spec`](Self::spec) to the tree, and give a clone to each child that
/// looks up partitions. The value belongs to one place of one tree.
///
/// ```
/// use verger::task::PartitionedSupervisor;
/// use verger::{Context, DynamicSupervisor, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sessions = PartitionedSupervisor::new("sessions", 4, |_| {
///     DynamicSupervisor::builder("partition").max_children(1000)
/// });
/// let app = Supervisor::builder("app").child(sessions.spec()).build()?.start().await?;
///
/// let session = worker("session", async |ctx: Context| ctx.cancelled().await);
/// let child = sessions.partition(&6).await?.start_child(session).await?;
/// assert_eq!(child.path().as_str(), "app/sessions/2/session#1");
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PartitionedSupervisor {
    inner: Arc<Inner>,
}

struct Inner {
    builder: SupervisorBuilder,
    place: Arc<Place>,
    partitions: NonZeroUsize,
    active: Mutex<Active>,
    resizing: tokio::sync::Mutex<()>,
}

/// How many partitions keys are divided among.
#[derive(Clone, Copy, Debug)]
struct Active {
    /// The incarnation of the supervisor that was resized. Every other has all of its partitions.
    start: u64,
    partitions: usize,
}

impl PartitionedSupervisor {
    /// Creates the value for a supervisor with this name and number of partitions.
    ///
    /// `partition` describes each of them, by its number from 0. It returns a builder of a supervisor, or its
    /// [`into_child`](crate::DynamicSupervisorBuilder::into_child) with further options. Its name is replaced.
    ///
    /// # Panics
    ///
    /// If `partitions` is 0.
    pub fn new<P: Into<ChildSpec>>(
        name: impl Into<String>,
        partitions: usize,
        partition: impl FnMut(usize) -> P,
    ) -> Self {
        let name = name.into();
        let Some(partitions) = NonZeroUsize::new(partitions) else {
            panic!("`{name}` has 0 partitions; write 1 or more, or use `per_core`");
        };
        Self::with(name, partitions, partition)
    }

    /// Creates the value for a supervisor with a partition for each processor core that the process may use.
    pub fn per_core<P: Into<ChildSpec>>(
        name: impl Into<String>,
        partition: impl FnMut(usize) -> P,
    ) -> Self {
        Self::with(name.into(), parallelism(), partition)
    }

    fn with<P: Into<ChildSpec>>(
        name: String,
        partitions: NonZeroUsize,
        mut partition: impl FnMut(usize) -> P,
    ) -> Self {
        let place = Place::new(name.clone());
        let mut builder = Supervisor::builder(name);
        builder.description.options.registration = Some(Arc::clone(&place) as _);
        let builder = (0..partitions.get()).fold(builder, |builder, number| {
            let spec: ChildSpec = partition(number).into();
            builder.child(spec.named(number.to_string()))
        });
        let active = Mutex::new(Active { start: 0, partitions: partitions.get() });
        let resizing = tokio::sync::Mutex::new(());
        Self { inner: Arc::new(Inner { builder, place, partitions, active, resizing }) }
    }

    /// Returns the builder of the supervisor, to set its options.
    pub fn builder(&self) -> SupervisorBuilder {
        self.inner.builder.clone()
    }

    /// Returns the spec of the supervisor, as a child of another one.
    pub fn spec(&self) -> ChildSpec {
        self.builder().into_child()
    }

    /// Returns how many partitions are declared.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.inner.partitions.get()
    }

    /// Returns how many partitions keys are divided among: all, unless the supervisor was
    /// [resized](Self::resize).
    #[must_use]
    pub fn active(&self) -> usize {
        let active = *self.inner.active.lock();
        match active.start == self.inner.place.starts() {
            true => active.partitions,
            false => self.partitions(),
        }
    }

    /// Returns a handle to the supervisor of the partitions.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`] if it has never run, [`ControlError::NotRunning`] while it waits for a
    /// restart or is stopped, and [`ControlError::Ended`] if its tree has ended.
    pub async fn handle(&self) -> Result<SupervisorHandle, ControlError> {
        self.inner.place.handle().await
    }

    /// Returns the partition of a key. Waits until it is up, if it is restarting.
    ///
    /// The same key belongs to the same partition until the supervisor is [resized](Self::resize).
    ///
    /// # Errors
    ///
    /// * [`ControlError::NoPartitions`] if the supervisor was resized to 0,
    /// * [`ControlError::NotStarted`] if it has never run,
    /// * those of [`SupervisorHandle::child`] if the partition is down and isn't restarted, such as
    ///   [`ControlError::InvalidState`], and [`ControlError::Ended`] if the tree has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn partition<K: PartitionKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<SupervisorHandle, ControlError> {
        consume_budget().await;
        loop {
            let before = (self.inner.place.starts(), self.active());
            let (tree, path) = self.address(key)?;
            let error = match find(&tree, &path, true).await {
                Ok(partition) => return Ok(partition),
                Err(error) => error,
            };
            // A resize may have terminated it, and the key belongs to another one.
            if self.inner.resizing.try_lock().is_err() {
                drop(self.inner.resizing.lock().await);
            } else if (self.inner.place.starts(), self.active()) == before {
                return Err(error);
            }
        }
    }

    /// Returns the partition of a key, without waiting for a restart.
    ///
    /// # Errors
    ///
    /// [`ControlError::Restarting`] if the partition is restarting, and every error of
    /// [`partition`](Self::partition).
    pub async fn try_partition<K: PartitionKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<SupervisorHandle, ControlError> {
        consume_budget().await;
        let (tree, path) = self.address(key)?;
        find(&tree, &path, false).await
    }

    /// Changes how many partitions are active, from 0 to [`partitions`](Self::partitions).
    ///
    /// Partitions from `size` on are terminated with their children, and keys are divided among the others.
    /// Partitions that become active again are started without children. A restart of the supervisor starts
    /// all partitions. Keys belong to other partitions afterwards, and their children aren't moved.
    ///
    /// # Errors
    ///
    /// [`ControlError::TooManyPartitions`] if `size` is too high, and those of
    /// [`stop_child`](SupervisorHandle::stop_child) and
    /// [`restart_child`](crate::OtpCalls::restart_child).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some partitions may not be terminated or started yet. Call `resize` again to
    /// finish that.
    pub async fn resize(&self, size: usize) -> Result<(), ControlError> {
        let Inner { place, partitions, active, resizing, .. } = &*self.inner;
        let supervisor = self.handle().await?;
        if size > partitions.get() {
            let (path, partitions) = (supervisor.path(), partitions.get());
            return Err(ControlError::TooManyPartitions { path, size, partitions });
        }
        let _resizing = resizing.lock().await;
        loop {
            let start = place.starts();
            // No key is sent to a partition that is about to be terminated, or isn't started yet.
            let smaller = size.min(self.active());
            *active.lock() = Active { start, partitions: smaller };
            for number in (size..partitions.get()).rev() {
                supervisor.stop_child(&number.to_string()).await?;
            }
            for number in 0..size {
                match supervisor.otp().restart_child(&number.to_string()).await {
                    Ok(_) | Err(ControlError::Running { .. } | ControlError::Restarting { .. }) => {
                    }
                    Err(error) => return Err(error),
                }
            }
            *active.lock() = Active { start, partitions: size };
            // The next incarnation has all partitions.
            if place.starts() == start {
                return Ok(());
            }
        }
    }

    /// Returns the path of the partition of a key, and its tree.
    fn address<K: PartitionKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<(Arc<Tree<SupervisorShared>>, Path), ControlError> {
        let (tree, path) = self.inner.place.address()?;
        let Some(active) = NonZeroUsize::new(self.active()) else {
            return Err(ControlError::NoPartitions { path, partitions: self.partitions() });
        };
        let number = key.partition(active) % active;
        Ok((tree, path.join(&number.to_string())))
    }
}

impl fmt::Debug for PartitionedSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedSupervisor")
            .field("name", &self.inner.place.name)
            .field("partitions", &self.partitions())
            .field("active", &self.active())
            .finish()
    }
}

/// A key that belongs to one of several partitions.
///
/// Implemented for the integer types, by their absolute value modulo the number of partitions, and for strings,
/// by their hash. Wrap every other type that implements [`Hash`] in [`ByHash`].
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use verger::task::PartitionKey;
///
/// let three = NonZeroUsize::new(3).unwrap();
/// assert_eq!(7_u64.partition(three), 1);
/// assert_eq!((-1_i32).partition(three), 1);
/// ```
pub trait PartitionKey {
    /// Returns the partition of the key, from 0 to one below `partitions`.
    ///
    /// A higher number is taken modulo `partitions`.
    fn partition(&self, partitions: NonZeroUsize) -> usize;
}

macro_rules! by_magnitude {
    ($($integer:ty $(: $unsigned_abs:ident)?),*) => {$(
        impl PartitionKey for $integer {
            fn partition(&self, partitions: NonZeroUsize) -> usize {
                modulo((*self)$(.$unsigned_abs())? as u128, partitions)
            }
        }
    )*};
}

by_magnitude!(u8, u16, u32, u64, u128, usize);
by_magnitude!(i8: unsigned_abs, i16: unsigned_abs, i32: unsigned_abs, i64: unsigned_abs);
by_magnitude!(i128: unsigned_abs, isize: unsigned_abs);

impl PartitionKey for str {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        ByHash(self).partition(partitions)
    }
}

impl PartitionKey for String {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        self.as_str().partition(partitions)
    }
}

impl<K: PartitionKey + ?Sized> PartitionKey for &K {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        (**self).partition(partitions)
    }
}

/// Makes a [`PartitionKey`] of any value that implements [`Hash`].
///
/// The hash of a value is the same in the whole process, and in each process of the same program. It may differ
/// after an update of the compiler.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use verger::task::{ByHash, PartitionKey};
///
/// let eight = NonZeroUsize::new(8).unwrap();
/// let key = ("device", 17);
/// assert_eq!(ByHash(&key).partition(eight), ByHash(&key).partition(eight));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ByHash<'a, T: ?Sized>(pub &'a T);

impl<T: Hash + ?Sized> PartitionKey for ByHash<'_, T> {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        // Its keys are always the same, unlike those of `RandomState`.
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        modulo(hasher.finish().into(), partitions)
    }
}

fn modulo(value: u128, partitions: NonZeroUsize) -> usize {
    let partitions = partitions.get() as u128;
    // Below a `usize`.
    (value % partitions) as usize
}
