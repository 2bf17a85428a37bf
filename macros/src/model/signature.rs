//! The types in a signature: by name, as a macro sees no more of them.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    FnArg, GenericParam, Generics, Ident, Lifetime, Pat, PatIdent, PatType, PathSegment, Type,
    TypePath,
};

use crate::span::generated_at;

/// Returns the parameters besides `self`.
pub(crate) fn typed_params<'a>(
    inputs: impl IntoIterator<Item = &'a FnArg>,
) -> impl Iterator<Item = &'a PatType> {
    inputs.into_iter().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        _ => None,
    })
}

/// Returns the name of a parameter for generated code, which can't be taken for a constant.
///
/// Hygiene keeps it apart from the user's parameter of the same name.
pub(crate) fn param_name(param: &PatType, otherwise: &str) -> Ident {
    match &*param.pat {
        Pat::Ident(PatIdent { ident, .. }) => {
            let mut name = ident.clone();
            name.set_span(generated_at(ident.span()));
            name
        }
        pat => Ident::new(otherwise, generated_at(pat.span())),
    }
}

/// Returns whether a type has this name.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|last| last.ident == name)
}

/// Returns whether a type is a context of an incarnation, or a reference to one. Whether it is the right one is checked
/// elsewhere.
pub(crate) fn is_context(ty: &Type) -> bool {
    let ty = without_reference(ty);
    is(ty, "Context") || is(ty, "BlockingContext")
}

/// Returns the type that a reference refers to, or the type itself.
pub(super) fn without_reference(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => &reference.elem,
        ty => ty,
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
    names(&ty.to_token_stream(), &|name| inferred(generics).any(|param| param == name))
}

/// Returns the names of the type parameters and of the constants.
pub(crate) fn inferred(generics: &Generics) -> impl Iterator<Item = &Ident> {
    generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    })
}

/// Returns whether an identifier like this occurs in these tokens.
pub(super) fn names(tokens: &TokenStream, is: &dyn Fn(&Ident) -> bool) -> bool {
    flatten(tokens.clone()).iter().any(|token| matches!(token, TokenTree::Ident(name) if is(name)))
}

/// Returns the tokens at any depth, without the delimiters of groups.
pub(super) fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flatten(group.stream()),
        token => vec![token],
    });
    tokens.collect()
}
