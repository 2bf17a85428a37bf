//! The error of a value that isn't provided.

use std::fmt;

use crate::path::Path;

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
