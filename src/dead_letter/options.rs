//! What a supervisor configures for the dead letters from itself and below.

use std::any::TypeId;

use super::store::DeadLetterStore;
use crate::policy::DeadLetterLog;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadLetterOptions {
    pub(crate) log: Option<DeadLetterLog>,
    pub(crate) stores: Vec<DeadLetterStore>,
    /// The types of messages whose letters are suppressed.
    pub(crate) suppressed: Vec<TypeId>,
}
