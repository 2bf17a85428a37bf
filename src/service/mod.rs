//! Services: values that one child provides and others use, across restarts of either.
//!
//! A child [provides](crate::Context::provide) a value while it lives. Its siblings, and everything below them,
//! find the value by its type, or by its type and a name:
//!
//! ```
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! /// Cheap to clone, as the pools of database clients are.
//! #[derive(Clone)]
//! struct Pool(&'static str);
//!
//! async fn db(ctx: Context) -> Exit {
//!     ctx.provide(Pool("postgres://db"))?;
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! async fn api(ctx: Context) -> Exit {
//!     let Pool(url) = ctx.service().await?;
//!     println!("connected to {url}");
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Supervisor::builder("app")
//!     .child(worker("db", db))
//!     .child(worker("api", api).requires("db"))
//!     .build()?
//!     .start()
//!     .await?;
//! # let Pool(_) = app.service().await?;
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where a value is found
//!
//! A child looks into these scopes, and uses the first in which there is a value:
//!
//! 1. that of its supervisor: the values of its siblings and its own,
//! 2. those below the siblings that it [requires](crate::ChildSpec::requires): the values of their children,
//! 3. the same for its supervisor, and so on up to the root.
//!
//! # How long a value is found
//!
//! From [`provide`](crate::Context::provide) until the child is cancelled or ends, for any reason. Then it is
//! *withdrawn*: no child gets it any more, and clones that were given out stay valid. The child's next
//! incarnation provides a new one. A user of the value learns of that in one of two ways:
//!
//! * It *watches*: [`Service::changed`] resolves when the value is withdrawn or replaced.
//! * It is *restarted* with its provider: it is declared after the provider, under
//!   [`Strategy::RestForOne`](crate::Strategy::RestForOne), and asks again when it starts.
//!
//! # With macros
//!
//! A parameter `Service<T>` of a function under `#[worker]` is the service that the child watches.
//!
//! ```
//! use verger::service::Service;
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! #[derive(Clone)]
//! struct Pool(&'static str);
//!
//! #[worker]
//! async fn db(ctx: Context, url: &'static str) -> Exit {
//!     ctx.provide(Pool(url))?;
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! #[worker]
//! async fn api(mut pool: Service<Pool>, port: u16) -> Exit {
//!     let Pool(url) = pool.get().await?;
//!     println!("port {port} serves what is in {url}");
//!     Ok(())
//! }
//!
//! let app = Supervisor::builder("app").child(db("postgres://db")).child(api(80)).build()?;
//! # drop(app);
//! # Ok::<_, verger::BuildError>(())
//! ```

mod context;
mod lock;
#[cfg(feature = "serde")]
mod serde;
mod values;
mod watch;

use std::sync::Arc;

pub use self::context::{ServiceError, ServiceInfo};
pub use self::lock::Lock;
use self::lock::Locks;
use self::values::Services;
pub use self::watch::Service;

/// What the children of one tree provide and lock.
#[derive(Debug, Default)]
pub(crate) struct ServiceTables {
    values: Arc<Services>,
    locks: Arc<Locks>,
}
