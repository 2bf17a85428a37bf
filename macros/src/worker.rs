//! `#[worker]`: from an `async fn` to a constructor of child specs, from an `impl` block to a
//! `Child`.

mod block;
mod bodies;
mod function;
mod inbox;

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{FnArg, Item, Lifetime, PatType, PathSegment, Safety, Signature, Type, TypePath};

use self::bodies::Bodies;
use crate::errors::Errors;

/// `#[worker(args)] item`
pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let (empty, bodies) = Bodies::take(item.clone());
    let error = match syn::parse2(empty) {
        Ok(Item::Fn(function)) => return function::expand(args, function, bodies),
        Ok(Item::Impl(block)) => return block::expand(args, block, bodies),
        Ok(Item::Struct(item)) => syn::Error::new(
            item.struct_token.span(),
            "a worker is an `async fn`, or the `impl` block of a type; put `#[worker]` there, or \
             write `#[supervisor]` if the fields are children",
        ),
        Ok(other) => syn::Error::new(
            other.span(),
            "a worker is an `async fn`, or the `impl` block of a type; put `#[worker]` there",
        ),
        Err(error) => error,
    };
    let error = error.into_compile_error();
    quote!(#item #error)
}

const TWICE: &str = "there is a `#[worker]` already; put all options into one";

const BORROWS: &str = "a worker can't borrow, because it outlives whoever starts it; let it own the \
                       data, or share it in an `Arc`";

/// Refuses functions that a supervisor can't call.
fn refuse_qualifiers(signature: &Signature, errors: &mut Errors) {
    if let Some(constness) = &signature.constness {
        errors.at(constness, "a worker can't be `const`, since it is `async`; remove this");
    }
    if !matches!(signature.safety, Safety::Default) {
        errors.at(
            &signature.safety,
            "a supervisor calls a worker without `unsafe`; remove this, and write `unsafe` blocks \
             in the function",
        );
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a worker is called from Rust; remove this");
    }
}

/// Removes what was refused, so that what uses the function is right.
fn remove_qualifiers(signature: &mut Signature) {
    signature.constness = None;
    signature.safety = Safety::Default;
    signature.abi = None;
}

/// A lifetime that a type has without declaring it, as in `&str` or `Cow<'_, str>`.
fn undeclared_lifetime(ty: &Type) -> Option<TokenStream> {
    struct Undeclared(Option<TokenStream>);

    impl<'ast> Visit<'ast> for Undeclared {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            if reference.lifetime.is_none() {
                let and = reference.and_token;
                self.0.get_or_insert(quote!(#and));
            }
            syn::visit::visit_type_reference(self, reference);
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident == "_" {
                self.0.get_or_insert(quote!(#lifetime));
            }
        }

        // `Fn(&str)` borrows when it is called.
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

/// Whether it is, by name, what a child learns about itself and its surroundings from.
fn is_context(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|last| last.ident == "Context")
}

/// What a type is called, without where it is from.
fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(TypePath { qself: None, path, .. }) => path.segments.last(),
        // From another macro.
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

/// The parameters besides `self`.
fn typed<'a>(inputs: impl IntoIterator<Item = &'a FnArg>) -> impl Iterator<Item = &'a PatType> {
    inputs.into_iter().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        _ => None,
    })
}
