//! What a tree under test is made from.

use crate::child::ChildSpec;
use crate::error::BuildError;
use crate::spec::{DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

/// What a [`TestTree`](super::TestTree) is made from: the builder of a supervisor of either kind.
///
/// Sealed: it can't be implemented elsewhere.
pub trait Builder: sealed::Sealed {}

impl Builder for SupervisorBuilder {}

impl Builder for DynamicSupervisorBuilder {}

mod sealed {
    use super::{BuildError, ChildSpec, DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

    /// Keeps [`Builder`](super::Builder) to this crate.
    pub trait Sealed {
        /// Builds the tree with what `change` makes of its children.
        fn build_with(
            self,
            change: &dyn Fn(ChildSpec) -> ChildSpec,
        ) -> Result<Supervisor, BuildError>;
    }

    impl Sealed for SupervisorBuilder {
        fn build_with(
            self,
            change: &dyn Fn(ChildSpec) -> ChildSpec,
        ) -> Result<Supervisor, BuildError> {
            self.map_children(change).build()
        }
    }

    impl Sealed for DynamicSupervisorBuilder {
        fn build_with(
            self,
            _change: &dyn Fn(ChildSpec) -> ChildSpec,
        ) -> Result<Supervisor, BuildError> {
            self.build()
        }
    }
}
