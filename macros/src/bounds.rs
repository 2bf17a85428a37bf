//! Bounds that an expansion adds, whether or not they exist already.

use syn::punctuated::Punctuated;
use syn::{Attribute, Generics, Token, Type, TypeParamBound, parse_quote};

use crate::span::repeat;

pub(crate) type Bounds = Punctuated<TypeParamBound, Token![+]>;

/// Adds bounds to a type, which is a type parameter or contains some.
pub(crate) fn require(generics: &mut Generics, ty: &Type, bounds: &Bounds) {
    let ty = repeat(ty);
    generics.make_where_clause().predicates.push(parse_quote!(#ty: #bounds));
}

/// Returns the lint level that lets generated code repeat bounds.
pub(crate) fn allow_added_bounds(generics: &Generics) -> Option<Attribute> {
    generics.type_params().next().map(|_| {
        parse_quote! {
            #[allow(
                clippy::multiple_bound_locations,
                clippy::trait_duplication_in_bounds,
                clippy::type_repetition_in_bounds,
                reason = "bounds are added whether or not they exist already"
            )]
        }
    })
}
