//! Attributes and bounds: those of the item that the expansion has to respect, and those that it adds.

use syn::punctuated::Punctuated;
use syn::{Attribute, Generics, Token, Type, TypeParamBound, parse_quote};

use crate::span::repeat;

/// Removes an attribute with the name of the macro, so that it isn't expanded a second time.
pub(crate) fn take_second(name: &str, attributes: &mut Vec<Attribute>) -> Option<Attribute> {
    let is_ours = |attribute: &Attribute| {
        let mut path = attribute.path().segments.iter().rev();
        path.next().is_some_and(|last| last.ident == name)
            && path.all(|segment| segment.ident == "verger")
    };
    attributes.extract_if(.., |attribute| is_ours(attribute)).last()
}

/// Returns whether an attribute derives a trait of this name.
pub(crate) fn derives(name: &str, attribute: &Attribute) -> bool {
    let mut found = false;
    if attribute.path().is_ident("derive") {
        // The compiler reports a derive that is no list of paths.
        let _ = attribute.parse_nested_meta(|derived| {
            found |= derived.path.segments.last().is_some_and(|last| last.ident == name);
            Ok(())
        });
    }
    found
}

/// Returns the conditions under which an item exists.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// Returns the lint level that lets generated code use a deprecated item, if the item is one.
pub(crate) fn allow_deprecated<'a>(
    attributes: impl IntoIterator<Item = &'a Attribute>,
) -> Option<Attribute> {
    attributes.into_iter().find(|attribute| attribute.path().is_ident("deprecated")).map(
        |_| parse_quote!(#[allow(deprecated, reason = "the generated code uses the item itself")]),
    )
}

pub(crate) type Bounds = Punctuated<TypeParamBound, Token![+]>;

/// Adds bounds to a type, which is a type parameter or contains some.
pub(crate) fn require(generics: &mut Generics, ty: &Type, bounds: &Bounds) {
    let ty = repeat(ty);
    generics.make_where_clause().predicates.push(parse_quote!(#ty: #bounds));
}

/// Returns the lint level that lets generated code repeat bounds. It can't `expect` the lints, because few items
/// trigger them.
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
