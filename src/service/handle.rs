//! Services as code outside of the children sees them.

use super::scopes::{Lookup, cloned};
use super::slow::Waiter;
use super::watch::Watch;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;

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
