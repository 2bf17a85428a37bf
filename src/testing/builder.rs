//! The builders that a test tree is made from.

use crate::child::ChildSpec;
use crate::error::BuildError;
use crate::spec::{DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

/// The builder of a supervisor, from which a [`TestTree`](super::TestTree) is made.
///
/// This trait is sealed and can't be implemented outside of this crate.
///
/// The example of [`TestTree`](super::TestTree) passes one.
pub trait Builder: sealed::Sealed {}

impl Builder for SupervisorBuilder {}

impl Builder for DynamicSupervisorBuilder {}

mod sealed {
    use super::{BuildError, ChildSpec, DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

    /// Seals [`Builder`](super::Builder).
    pub trait Sealed {
        /// Builds the tree with each child replaced by the result of `change`.
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
