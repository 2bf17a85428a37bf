//! What a child calls to provide and to use services.

use std::any::{TypeId, type_name};
use std::sync::Arc;

use super::error::ServiceError;
use super::scopes::{Lookup, cloned, own_scope};
use super::values::ServiceKey;
use super::watch::Service;
use crate::child::Context;
use crate::exit::ExitError;
use crate::handle::supervisor_of;

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
        self.offer(None, value)
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
        self.offer(Some(name), value)
    }

    fn offer<T: Send + Sync + 'static>(
        &self,
        name: Option<&str>,
        value: T,
    ) -> Result<(), ServiceError> {
        if self.is_cancelled() {
            return Ok(());
        }
        let services = &supervisor_of(self).tree.service.values;
        let (key, value) = (self.own_key::<T>(name), Arc::new(value));
        let provided = services.provide(key, &self.incarnation, value, type_name::<T>());
        provided.map_err(|provider| ServiceError::AlreadyProvided {
            path: self.path(),
            provider: provider.path(),
            service: type_name::<T>(),
            name: name.map(str::to_owned),
        })
    }

    /// Withdraws the value of this type that this incarnation [provides](Self::provide), if it does.
    pub fn withdraw<T: Send + Sync + 'static>(&self) {
        let key = self.own_key::<T>(None);
        supervisor_of(self).tree.service.values.withdraw(&key, &self.incarnation);
    }

    /// Withdraws the value of this type and name that this incarnation [provides](Self::provide_named), if it
    /// does.
    pub fn withdraw_named<T: Send + Sync + 'static>(&self, name: &str) {
        let key = self.own_key::<T>(Some(name));
        supervisor_of(self).tree.service.values.withdraw(&key, &self.incarnation);
    }

    fn own_key<T: 'static>(&self, name: Option<&str>) -> ServiceKey {
        let (scope, name) = (own_scope(self), name.map(Arc::from));
        ServiceKey { scope, type_id: TypeId::of::<T>(), name }
    }

    /// Waits until a value of type `T` is provided, and returns a clone of it.
    ///
    /// The module [`service`](crate::service) describes where it looks, and which of several values it finds. A
    /// wait of 10 s is logged, with the type and the likely cause. It ends only when a value is provided or this
    /// child is cancelled.
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
