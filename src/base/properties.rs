//! Properties: typed values that belong to a child and outlive its incarnations.
//!
//! A child has at most one property of each type, and few in all. This module does not know where they
//! are set.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::panic::Foreign;

/// See the [module](self). Cheap to clone. An empty value allocates nothing.
#[derive(Clone, Default)]
pub(crate) struct Properties(Option<Arc<Vec<Foreign<dyn Any + Send + Sync>>>>);

impl Properties {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let mut values = self.0.iter().flat_map(|values| values.iter());
        let value = values.find(|value| (***value).is::<T>())?;
        Arc::clone(value.shared()).downcast().ok()
    }

    pub(crate) fn set(&mut self, value: Arc<dyn Any + Send + Sync>) {
        self.replace(Foreign::new(value));
    }

    /// Sets a property, unless one of its type is set.
    pub(crate) fn add(&mut self, value: Arc<dyn Any + Send + Sync>) {
        let kind = (*value).type_id();
        if !self.0.iter().flat_map(|values| values.iter()).any(|old| (**old).type_id() == kind) {
            self.set(value);
        }
    }

    fn replace(&mut self, value: Foreign<dyn Any + Send + Sync>) {
        let kind = |value: &Foreign<dyn Any + Send + Sync>| -> TypeId { (**value).type_id() };
        let values = Arc::make_mut(self.0.get_or_insert_default());
        match values.iter_mut().find(|old| kind(old) == kind(&value)) {
            Some(old) => *old = value,
            None => values.push(value),
        }
    }

    /// Sets all properties of `changes`.
    pub(crate) fn change(&mut self, changes: &Self) {
        if self.is_empty() {
            return self.clone_from(changes);
        }
        for value in changes.0.iter().flat_map(|values| values.iter()) {
            self.replace(value.clone());
        }
    }
}

/// Prints the number of properties: the values are opaque.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Properties({})", self.0.as_ref().map_or(0, |values| values.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Endpoint(&'static str);

    fn of(values: Vec<Arc<dyn Any + Send + Sync>>) -> Properties {
        let mut properties = Properties::default();
        values.into_iter().for_each(|value| properties.set(value));
        properties
    }

    #[test]
    fn a_change_replaces_the_property_of_its_type_only() {
        let mut properties = of(vec![Arc::new(Endpoint("a")), Arc::new(1_u8)]);
        let before = properties.clone();
        properties.change(&of(vec![Arc::new(Endpoint("b")), Arc::new(true)]));

        assert_eq!(properties.get(), Some(Arc::new(Endpoint("b"))));
        assert_eq!(properties.get(), Some(Arc::new(1_u8)));
        assert_eq!(properties.get(), Some(Arc::new(true)));
        assert_eq!(properties.get::<u16>(), None);
        assert_eq!(before.get(), Some(Arc::new(Endpoint("a"))), "a clone is not changed with it");
    }

    #[test]
    fn an_empty_change_leaves_the_properties() {
        let mut properties = Properties::default();
        assert!(properties.is_empty());
        assert_eq!(properties.get::<u8>(), None);

        properties.change(&of(vec![Arc::new(1_u8)]));
        properties.change(&Properties::default());
        assert_eq!(properties.get(), Some(Arc::new(1_u8)));
        assert_eq!(format!("{properties:?}"), "Properties(1)");
    }
}
