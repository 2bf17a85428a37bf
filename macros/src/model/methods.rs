//! The methods of an `impl` block: those that become the trait's, and those that handle events.

use syn::{Attribute, ImplItem, ImplItemFn, ItemImpl, Type};

use super::signature::{is_context, typed_params};
use crate::errors::Errors;
use crate::keys::Place;
use crate::parse::Args;

/// The methods of the trait `Child`.
pub(crate) const METHODS: [&str; 3] = ["activate", "run", "deactivate"];

pub(crate) fn child_methods(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if is_of_child(method) => Some(method),
        _ => None,
    })
}

pub(crate) fn is_of_child(method: &ImplItemFn) -> bool {
    METHODS.iter().any(|name| method.sig.ident == name)
}

/// A method with `#[on]`, without that attribute.
pub(crate) struct Handler {
    pub(crate) method: ImplItemFn,
    pub(crate) options: Args,
}

impl Handler {
    /// Removes `#[on]` from the methods of a block, and returns them.
    pub(crate) fn take(block: &mut ItemImpl, errors: &mut Errors) -> Vec<Self> {
        let mut handlers = Vec::new();
        for item in &mut block.items {
            let ImplItem::Fn(method) = item else { continue };
            let is_on = |attribute: &mut Attribute| attribute.path().is_ident("on");
            // Each attribute is a registration, on its own channel.
            let attributes: Vec<_> = method.attrs.extract_if(.., is_on).collect();
            handlers.extend(attributes.iter().map(|attribute| {
                let options = Args::of(Place::Handler, attribute, errors);
                Self { method: method.clone(), options }
            }));
        }
        handlers
    }

    /// Returns whether it takes the context.
    pub(crate) fn takes_context(&self) -> bool {
        self.params().next().is_some_and(is_context)
    }

    /// Returns the types of the parameters besides `self`.
    pub(crate) fn params(&self) -> impl Iterator<Item = &Type> {
        typed_params(&self.method.sig.inputs).map(|param| &*param.ty)
    }

    /// Returns the type of the event.
    pub(crate) fn event(&self) -> Option<&Type> {
        self.params().nth(usize::from(self.takes_context()))
    }
}
