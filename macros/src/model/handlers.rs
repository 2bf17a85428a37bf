//! The methods of an `impl` block that handle events: those with the attribute `#[on]`.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, GenericArgument, ImplItem, ImplItemFn, ItemImpl, Meta, PathArguments, Token,
    Type,
};

use super::signature::{is_context_or_borrow, last_segment, typed_params};

/// A method with `#[on]`, without that attribute.
pub(crate) struct Handler {
    pub(crate) method: ImplItemFn,
    pub(crate) options: Vec<Meta>,
}

impl Handler {
    /// Removes `#[on]` from the methods of a block, and returns them.
    pub(crate) fn take(block: &mut ItemImpl) -> Vec<Self> {
        let mut handlers = Vec::new();
        for item in &mut block.items {
            let ImplItem::Fn(method) = item else { continue };
            let is_on = |attribute: &mut Attribute| attribute.path().is_ident("on");
            // Each attribute is a registration, on a channel of its own.
            let attributes: Vec<_> = method.attrs.extract_if(.., is_on).collect();
            for attribute in attributes {
                handlers.push(Self { method: method.clone(), options: options(&attribute) });
            }
        }
        handlers
    }

    /// Whether it takes the context.
    pub(crate) fn takes_context(&self) -> bool {
        self.params().next().is_some_and(is_context_or_borrow)
    }

    /// The parameters besides `self`.
    pub(crate) fn params(&self) -> impl Iterator<Item = &Type> {
        typed_params(&self.method.sig.inputs).map(|param| &*param.ty)
    }

    /// The type of the parameter that is the event.
    pub(crate) fn event(&self) -> Option<&Type> {
        self.params().nth(usize::from(self.takes_context()))
    }

    pub(crate) fn receiver(&self) -> Option<&FnArg> {
        self.method.sig.inputs.first().filter(|input| matches!(input, FnArg::Receiver(_)))
    }
}

/// Returns the options in the parentheses of `#[on(…)]`. What can't be parsed is reported as an unknown one.
fn options(attribute: &Attribute) -> Vec<Meta> {
    if matches!(attribute.meta, Meta::Path(_)) {
        return Vec::new();
    }
    let parsed = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    parsed.map_or_else(|_| vec![attribute.meta.clone()], |options| options.into_iter().collect())
}

/// Returns whether a type is an `Arc<E>`.
pub(crate) fn is_arc(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|last| {
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
        last.ident == "Arc" && matches!(arguments.args.first(), Some(GenericArgument::Type(_)))
    })
}
