//! The methods of an `impl` block that become those of the trait `Child`.

use syn::{ImplItem, ImplItemFn, ItemImpl};

/// The methods of the trait.
pub(crate) const METHODS: [&str; 3] = ["activate", "run", "deactivate"];

pub(crate) fn child_methods(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if is_of_child(method) => Some(method),
        _ => None,
    })
}

pub(crate) fn child_methods_mut(block: &mut ItemImpl) -> impl Iterator<Item = &mut ImplItemFn> {
    block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(method) if is_of_child(method) => Some(method),
        _ => None,
    })
}

fn is_of_child(method: &ImplItemFn) -> bool {
    METHODS.iter().any(|name| method.sig.ident == name)
}
