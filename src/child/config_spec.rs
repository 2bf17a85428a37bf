//! What a spec says about the configuration of its child.
//!
//! Knows the type of the values, and what a change leads to. Reading and checking values is up to the
//! module `config`, which this file doesn't know.

use std::any::{Any, TypeId};

/// The configuration of a child, as far as its supervisor has to know about it.
pub(crate) struct ConfigSpec {
    pub(crate) type_id: TypeId,
    pub(crate) type_name: &'static str,
    /// The path of the section that has the values, below the root. `None`: the child's own.
    pub(crate) section: Option<String>,
    /// Whether a change restarts the child.
    pub(crate) restarts: bool,
    /// What reads and checks values: a type of the module `config`.
    pub(crate) reader: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for ConfigSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ConfigSpec").field(&self.type_name).finish()
    }
}
