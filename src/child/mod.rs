//! Children: what a supervisor runs.
//!
//! | file | what it is |
//! | --- | --- |
//! | `stop` | the stop signal of one incarnation |
//! | `incarnation` | what a child's task, its contexts and its supervisor share |
//! | `context`, `cancelled`, `own_policy` | what a child is given |
//! | `child_trait`, `component`, `workers`, `value` | children made from functions and values |
//! | `factory` | how each incarnation is made |
//! | `task`, `span`, `spawn` | the task of one incarnation |
//! | `spec`, `limits`, `waits`, `health` | how a child is supervised |

mod cancelled;
mod child_trait;
mod component;
mod context;
mod factory;
mod health;
mod incarnation;
mod limits;
mod own_policy;
mod span;
mod spawn;
mod spec;
mod stop;
mod task;
mod value;
mod waits;
mod workers;

pub use self::cancelled::Cancelled;
pub use self::child_trait::Child;
pub use self::component::{Component, component};
pub use self::context::Context;
#[cfg(feature = "testing")]
pub(crate) use self::factory::IncarnationFactory;
pub(crate) use self::factory::{ChildFactory, ChildMeta, FactoryKind, Nested, Phases, Resolved};
pub use self::health::HealthCheck;
#[cfg(test)]
pub(crate) use self::incarnation::orphan;
pub(crate) use self::incarnation::{Incarnation, Parent};
pub(crate) use self::limits::{check_intensity, check_limits, check_on_exhausted, check_twice};
pub(crate) use self::spawn::spawn;
pub use self::spec::{ChildDefaults, ChildSpec};
pub(crate) use self::stop::StopLevel;
#[cfg(feature = "testing")]
pub(crate) use self::task::ExitFuture;
pub(crate) use self::workers::function_kind;
pub use self::workers::{child, child_with_mailbox, worker, worker_with, worker_with_mailbox};
