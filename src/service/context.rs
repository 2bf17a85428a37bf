//! What children, and code outside of them, call to provide and to use services.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use super::values::{Lookup, ServiceKey, cloned, own_scope};
use super::watch::{Service, Waiter, Watch};
use crate::child::Context;
use crate::error::ControlError;
use crate::exit::ExitError;
use crate::handle::{SupervisorHandle, supervisor_of};
use crate::path::Path;

impl Context {
    /// Provides a value to the children of this child's supervisor, and to everything below them.
    ///
    /// Any number of them get a clone of it, with [`service`](Self::service). The value is withdrawn when this
    /// child is cancelled or ends. A second call replaces it. See the module [`service`](crate::service).
    ///
    /// A call on the context of an incarnation that is cancelled or has ended has no effect.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use verger::{Context, Exit};
    ///
    /// struct Pool;
    ///
    /// async fn pool(ctx: Context) -> Exit {
    ///     ctx.provide(Arc::new(Pool))?;
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// async fn reports(ctx: Context) -> Exit {
    ///     // Waits until a child provides a pool.
    ///     let pool: Arc<Pool> = ctx.service().await?;
    ///     # drop(pool);
    ///     Ok(())
    /// }
    /// # drop((pool, reports));
    /// ```
    ///
    /// # Errors
    ///
    /// [`ServiceError::AlreadyProvided`] if a sibling provides a value of the same type, without a name as well.
    /// [`provide_named`](Self::provide_named) tells them apart.
    pub fn provide<T: Clone + Send + Sync + 'static>(&self, value: T) -> Result<(), ServiceError> {
        self.offer(own_scope(self), None, value)
    }

    /// Provides a value as [`provide`](Self::provide) does, to the children of a supervisor further up and to everything
    /// below them.
    ///
    /// `ancestor` is the path of a supervisor above this child, such as `app`, with or without the serial numbers of
    /// dynamic children. A child that can't [require](crate::ChildSpec::requires) the provider, since it has to run
    /// while that is down, finds the value this way.
    ///
    /// ```
    /// use verger::{Context, Exit, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(Clone)]
    /// struct Pool(&'static str);
    ///
    /// async fn db(ctx: Context) -> Exit {
    ///     ctx.provide_to("app", Pool("postgres://db"))?;
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// let storage = Supervisor::builder("storage").child(worker("db", db));
    /// let app = Supervisor::builder("app").child(storage).build()?.start().await?;
    /// let Pool(url) = app.service().await?;
    /// assert_eq!(url, "postgres://db");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ServiceError::NotAnAncestor`] if there is no supervisor with this path above this child,
    /// * [`ServiceError::AlreadyProvided`] if a different child provides a value of the same type there.
    pub fn provide_to<T: Clone + Send + Sync + 'static>(
        &self,
        ancestor: &str,
        value: T,
    ) -> Result<(), ServiceError> {
        let found = self.path().ancestors().find(|scope| {
            scope.as_str() == ancestor || scope.without_serials().as_str() == ancestor
        });
        let scope = found.ok_or_else(|| ServiceError::NotAnAncestor {
            path: self.path(),
            service: type_name::<T>(),
            requested: ancestor.to_owned(),
        })?;
        self.offer(scope, None, value)
    }

    /// Provides a value as [`provide`](Self::provide) does, under a name. Values of one type with different
    /// names don't interfere.
    ///
    /// ```
    /// # use verger::{Context, Exit};
    /// # #[derive(Clone)]
    /// # struct Pool(&'static str);
    /// async fn databases(ctx: Context) -> Exit {
    ///     ctx.provide_named("primary", Pool("db-1"))?;
    ///     ctx.provide_named("replica", Pool("db-2"))?;
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// async fn reports(ctx: Context) -> Exit {
    ///     let Pool(url) = ctx.service_named("replica").await?;
    ///     println!("reading from {url}");
    ///     Ok(())
    /// }
    /// # drop((databases, reports));
    /// ```
    ///
    /// # Errors
    ///
    /// [`ServiceError::AlreadyProvided`] if a sibling provides a value of the same type and name.
    pub fn provide_named<T: Clone + Send + Sync + 'static>(
        &self,
        name: &str,
        value: T,
    ) -> Result<(), ServiceError> {
        self.offer(own_scope(self), Some(name), value)
    }

    fn offer<T: Send + Sync + 'static>(
        &self,
        scope: Path,
        name: Option<&str>,
        value: T,
    ) -> Result<(), ServiceError> {
        if self.is_cancelled() {
            return Ok(());
        }
        let services = &supervisor_of(self).tree.service.values;
        let (key, value) = (key_in::<T>(scope, name), Arc::new(value));
        let provided = services.provide(key, &self.incarnation, value, type_name::<T>());
        provided.map_err(|provider| ServiceError::AlreadyProvided {
            path: self.path(),
            provider: provider.path(),
            service: type_name::<T>(),
            name: name.map(str::to_owned),
        })
    }

    /// Withdraws the value of this type that this incarnation [provides](Self::provide), to its siblings or
    /// [further up](Self::provide_to), if it does.
    pub fn withdraw<T: Send + Sync + 'static>(&self) {
        for scope in self.path().ancestors() {
            let key = key_in::<T>(scope, None);
            supervisor_of(self).tree.service.values.withdraw(&key, &self.incarnation);
        }
    }

    /// Withdraws the value of this type and name that this incarnation [provides](Self::provide_named), if it
    /// does.
    pub fn withdraw_named<T: Send + Sync + 'static>(&self, name: &str) {
        let key = key_in::<T>(own_scope(self), Some(name));
        supervisor_of(self).tree.service.values.withdraw(&key, &self.incarnation);
    }

    /// Waits until a value of type `T` is provided, and returns a clone of it.
    ///
    /// The module [`service`](crate::service) describes where it looks, and which of several values it finds. The status
    /// of the child shows the wait. A value that is provided out of the child's scope is logged immediately, and a wait
    /// of 10 s with the type and the likely cause. The wait ends only when a value is provided or this child is
    /// cancelled.
    ///
    /// Under a supervisor that starts its children one after the other, a child that isn't ready must not wait
    /// for a sibling that is declared after it: the sibling starts only when the child is ready. The log line of
    /// the wait then says so.
    ///
    /// # Errors
    ///
    /// A shutdown, if the child is cancelled, or if its incarnation has ended. Return it with `?`: the exit of
    /// the child is then [`Shutdown`](crate::ExitReason::Shutdown).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn service<T: Clone + Send + Sync + 'static>(&self) -> Result<T, ExitError> {
        self.await_service(None).await
    }

    /// Waits as [`service`](Self::service) does, for a value with this name.
    ///
    /// # Errors
    ///
    /// As for [`service`](Self::service).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn service_named<T: Clone + Send + Sync + 'static>(
        &self,
        name: &str,
    ) -> Result<T, ExitError> {
        self.await_service(Some(name)).await
    }

    async fn await_service<T: Clone + Send + Sync + 'static>(
        &self,
        name: Option<&str>,
    ) -> Result<T, ExitError> {
        tokio::task::coop::consume_budget().await;
        let lookup = Lookup::of_child::<T>(self, name);
        match lookup.find().filter(|_| !self.is_cancelled()) {
            Some(value) => Ok(cloned(&value)),
            None => Service::new(self, lookup).get().await,
        }
    }

    /// Returns a clone of the value of type `T` that is provided now, if there is one.
    #[must_use]
    pub fn try_service<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.find_service(None)
    }

    /// Returns a clone of the value of this type and name that is provided now, if there is one.
    #[must_use]
    pub fn try_service_named<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<T> {
        self.find_service(Some(name))
    }

    fn find_service<T: Clone + Send + Sync + 'static>(&self, name: Option<&str>) -> Option<T> {
        let value = Lookup::of_child::<T>(self, name).find().filter(|_| !self.is_cancelled())?;
        Some(cloned(&value))
    }

    /// Returns the value of type `T` that is provided, and a way to learn of each change.
    #[must_use]
    pub fn watch_service<T: Clone + Send + Sync + 'static>(&self) -> Service<T> {
        Service::new(self, Lookup::of_child::<T>(self, None))
    }

    /// Returns the same as [`watch_service`](Self::watch_service), for a value with this name.
    #[must_use]
    pub fn watch_service_named<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Service<T> {
        Service::new(self, Lookup::of_child::<T>(self, Some(name)))
    }
}

fn key_in<T: 'static>(scope: Path, name: Option<&str>) -> ServiceKey {
    ServiceKey { scope, type_id: TypeId::of::<T>(), name: name.map(Arc::from) }
}

/// The reason why a child can't provide a value.
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::service::ServiceError;
/// use verger::{Context, Exit};
///
/// #[derive(Clone)]
/// struct Pool(&'static str);
///
/// async fn replica(ctx: Context) -> Exit {
///     if let Err(ServiceError::AlreadyProvided { provider, .. }) = ctx.provide(Pool("db-2")) {
///         println!("`{provider}` provides the primary");
///         ctx.provide_named("replica", Pool("db-2"))?;
///     }
///     ctx.cancelled().await;
///     Ok(())
/// }
/// # drop((replica, Pool("").0));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// A different child provides a value of this type and name to the same supervisor's children.
    #[error(
        "`{path}` can't provide {}: `{provider}` does already; give each a name of its own with \
         `provide_named`",
        Named(.service, .name.as_deref())
    )]
    AlreadyProvided {
        /// The child that can't.
        path: Path,
        /// The child that provides the value.
        provider: Path,
        /// The name of the type.
        service: &'static str,
        /// The name of the value, if it has one.
        name: Option<String>,
    },
    /// [`provide_to`](Context::provide_to) names no supervisor above the child.
    #[error(
        "`{path}` can't provide `{service}` to `{requested}`, which is no supervisor above it; write {}",
        above(.path)
    )]
    NotAnAncestor {
        /// The child that can't.
        path: Path,
        /// The name of the type.
        service: &'static str,
        /// The path that was requested.
        requested: String,
    },
}

/// Returns the paths of the supervisors above a child, as text.
fn above(child: &Path) -> String {
    let mut paths: Vec<_> = child.ancestors().map(|path| format!("`{path}`")).collect();
    paths.reverse();
    paths.join(" or ")
}

impl fmt::Debug for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A type, and the name of a value.
pub(super) struct Named<'a>(pub(super) &'a str, pub(super) Option<&'a str>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(service, None) => write!(f, "`{service}`"),
            Self(service, Some(name)) => {
                write!(f, "`{service}` named `{}`", crate::invisible::Visible(name))
            }
        }
    }
}

/// A value that a child provides.
///
/// ```
/// use verger::{Context, Exit, Readiness, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// async fn settings(ctx: Context) -> Exit {
///     ctx.provide(42_u16)?;
///     ctx.ready();
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// let settings = worker("settings", settings).readiness(Readiness::Signal);
/// let app = Supervisor::builder("app").child(settings).build()?.start().await?;
///
/// let services = app.services();
/// assert_eq!(services[0].service, "u16");
/// assert_eq!(services[0].provider.as_str(), "app/settings");
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceInfo {
    /// The supervisor whose children, and all below them, find the value.
    pub scope: Path,
    /// The name of the type.
    pub service: &'static str,
    /// The name of the value, if it has one.
    pub name: Option<String>,
    /// The child that provides the value.
    pub provider: Path,
    /// The incarnation of that child.
    pub incarnation: u32,
}

impl SupervisorHandle {
    /// Returns a clone of the value of type `T` that a child of this supervisor, or of one above, provides now.
    ///
    /// See the module [`service`](crate::service).
    #[must_use]
    pub fn try_service<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let lookup = Lookup::of_supervisor::<T>(self.current(), None);
        lookup.find().as_ref().map(cloned)
    }

    /// Waits until a child of this supervisor, or of one above, provides a value of type `T`, and returns a clone
    /// of it.
    ///
    /// A wait of 10 s is logged.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use verger::{Context, Exit, Supervisor, worker};
    ///
    /// struct Pool;
    ///
    /// async fn pool(ctx: Context) -> Exit {
    ///     ctx.provide(Arc::new(Pool))?;
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker("pool", pool)).build()?.start().await?;
    ///
    /// // Waits for the first poll of the child.
    /// let pool: Arc<Pool> = app.service().await?;
    /// # drop(pool);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ControlError::Ended`] or [`ControlError::NotRunning`] if the supervisor ends before, or has ended.
    ///
    /// # Panics
    ///
    /// If it has to wait outside of a tokio runtime with a timer.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn service<T: Clone + Send + Sync + 'static>(&self) -> Result<T, ControlError> {
        tokio::task::coop::consume_budget().await;
        let supervisor = self.here().await?;
        let lookup = Lookup::of_supervisor::<T>(supervisor.clone(), None);
        if let Some(value) = lookup.find() {
            return Ok(cloned(&value));
        }
        let mut watch = Watch::new(lookup);
        tokio::select! {
            biased;
            value = watch.get(Waiter::Handle(&supervisor)) => Ok(value),
            _ = supervisor.progress.until_ended() => Err(self.not_running(supervisor.path()).await),
        }
    }

    /// Returns all values that the children of the tree provide now, ordered by scope, type and name.
    #[must_use]
    pub fn services(&self) -> Vec<ServiceInfo> {
        let provided = self.current().tree.service.values.provided().into_iter();
        let mut services: Vec<_> = provided
            .map(|it| ServiceInfo {
                scope: it.key.scope,
                service: it.type_name,
                name: it.key.name.map(|name| name.to_string()),
                provider: it.provider.path(),
                incarnation: it.provider.number,
            })
            .collect();
        services.sort_by(|a, b| {
            (&a.scope, a.service, &a.name, &a.provider).cmp(&(
                &b.scope,
                b.service,
                &b.name,
                &b.provider,
            ))
        });
        services
    }
}
