//! The types in a signature: by name, as a macro sees no more of them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{FnArg, GenericParam, Generics, Ident, Lifetime, PatType, PathSegment, Type, TypePath};

/// Returns the parameters besides `self`.
pub(crate) fn typed_params<'a>(
    inputs: impl IntoIterator<Item = &'a FnArg>,
) -> impl Iterator<Item = &'a PatType> {
    inputs.into_iter().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        _ => None,
    })
}

/// Returns whether a type is named `Context`.
pub(crate) fn is_context(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|last| last.ident == "Context")
}

/// Returns whether a type is `Context`, or a reference to one, which is reported elsewhere.
pub(crate) fn is_context_or_borrow(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_context(&reference.elem),
        ty => is_context(ty),
    }
}

/// Returns the last segment of a type's path.
pub(super) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(TypePath { qself: None, path, .. }) => path.segments.last(),
        // An invisible group of another macro.
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

/// Returns a lifetime that a type has without declaring it, as in `&str` or `Cow<'_, str>`.
pub(crate) fn undeclared_lifetime(ty: &Type) -> Option<TokenStream> {
    struct Undeclared(Option<TokenStream>);

    impl<'ast> Visit<'ast> for Undeclared {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            if reference.lifetime.is_none() {
                let and = reference.and_token;
                self.0.get_or_insert(quote!(#and));
            }
            visit::visit_type_reference(self, reference);
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident == "_" {
                self.0.get_or_insert(quote!(#lifetime));
            }
        }

        // `Fn(&str)` borrows only while it is called.
        fn visit_parenthesized_generic_arguments(
            &mut self,
            _: &'ast syn::ParenthesizedGenericArguments,
        ) {
        }

        fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}
    }

    let mut undeclared = Undeclared(None);
    undeclared.visit_type(ty);
    undeclared.0
}

/// Returns whether a type mentions type parameters or constants of the item that it is part of.
pub(crate) fn is_generic(ty: &Type, generics: &Generics) -> bool {
    struct Mentions<'a>(&'a Generics, bool);

    impl<'ast> Visit<'ast> for Mentions<'_> {
        fn visit_ident(&mut self, ident: &'ast Ident) {
            self.1 |= self.0.params.iter().any(|param| match param {
                GenericParam::Type(param) => param.ident == *ident,
                GenericParam::Const(param) => param.ident == *ident,
                GenericParam::Lifetime(_) => false,
            });
        }
    }

    let mut mentions = Mentions(generics, false);
    mentions.visit_type(ty);
    mentions.1
}
