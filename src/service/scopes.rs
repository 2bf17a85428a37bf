//! The scopes that a value is looked up in, from the nearest to the farthest.

use std::any::TypeId;
use std::sync::Arc;

use super::values::{ServiceKey, ServiceValue};
use crate::child::Context;
use crate::handle::supervisor_of;
use crate::path::Path;
use crate::runtime::SupervisorShared;

/// Where a value of one type and name is looked up, in order. It doesn't change while the incarnation lives:
/// a scope is the path of a supervisor, and not one of its incarnations.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) supervisor: Arc<SupervisorShared>,
    keys: Arc<[ServiceKey]>,
}

impl Lookup {
    /// Returns the lookup of a child.
    pub(super) fn of_child<T: 'static>(ctx: &Context, name: Option<&str>) -> Self {
        let segment = ctx.incarnation.segment();
        Self::new::<T>(supervisor_of(ctx), Some(&segment), name)
    }

    /// Returns the lookup of code that isn't a child, for what the children of this supervisor provide.
    pub(super) fn of_supervisor<T: 'static>(
        supervisor: Arc<SupervisorShared>,
        name: Option<&str>,
    ) -> Self {
        Self::new::<T>(supervisor, None, name)
    }

    fn new<T: 'static>(
        supervisor: Arc<SupervisorShared>,
        child: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        let (type_id, name) = (TypeId::of::<T>(), name.map(Arc::<str>::from));
        let key = |scope| ServiceKey { scope, type_id, name: name.clone() };
        let mut keys = Vec::new();
        let mut child = child;
        for level in supervisor.upward() {
            keys.push(key(level.path().clone()));
            let required = child.map(|child| level.required_by(child)).unwrap_or_default();
            keys.extend(required.iter().map(|sibling| key(level.path().join(sibling))));
            child = Some(level.path().name());
        }
        Self { supervisor, keys: keys.into() }
    }

    pub(super) fn keys(&self) -> &[ServiceKey] {
        &self.keys
    }

    /// Returns the value in the nearest scope that has one.
    pub(super) fn find(&self) -> Option<ServiceValue> {
        let services = &self.supervisor.tree.service.values;
        self.keys.iter().find_map(|key| services.get(key))
    }
}

/// Returns the scope in which a child provides its values.
pub(super) fn own_scope(ctx: &Context) -> Path {
    ctx.incarnation.parent.path()
}

/// Returns a clone of the value, made outside of every lock.
pub(super) fn cloned<T: Clone + 'static>(value: &ServiceValue) -> T {
    value.value.downcast_ref::<T>().expect("the type is part of the key").clone()
}
