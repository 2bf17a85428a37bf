//! Attributes that are not ours, but concern what is written.

use syn::{Attribute, Generics, parse_quote};

/// Removes an attribute that is called like the one that is expanded, so that it doesn't write
/// everything once more.
pub(crate) fn take_second(name: &str, attributes: &mut Vec<Attribute>) -> Option<Attribute> {
    let is_ours = |attribute: &Attribute| {
        let mut path = attribute.path().segments.iter().rev();
        path.next().is_some_and(|last| last.ident == name)
            && path.all(|segment| segment.ident == "verger")
    };
    attributes.extract_if(.., |attribute| is_ours(attribute)).last()
}

/// Whether an attribute is a `derive` of something that is called like this.
pub(crate) fn derives(name: &str, attribute: &Attribute) -> bool {
    let mut found = false;
    if attribute.path().is_ident("derive") {
        // What isn't a list of paths is the compiler's business.
        let _ = attribute.parse_nested_meta(|derived| {
            found |= derived.path.segments.last().is_some_and(|last| last.ident == name);
            Ok(())
        });
    }
    found
}

/// Those that decide whether something is there.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// What allows code to use what has these attributes.
pub(crate) fn allow_deprecated<'a>(
    attributes: impl IntoIterator<Item = &'a Attribute>,
) -> Option<Attribute> {
    attributes.into_iter().find(|attribute| attribute.path().is_ident("deprecated")).map(
        |_| parse_quote!(#[allow(deprecated, reason = "it is deprecated for whoever uses it")]),
    )
}

/// What allows bounds to be added to those that are there, which may be the same.
pub(crate) fn allow_added_bounds(generics: &Generics) -> Option<Attribute> {
    generics.type_params().next().map(|_| {
        parse_quote! {
            #[allow(
                clippy::trait_duplication_in_bounds,
                clippy::type_repetition_in_bounds,
                reason = "some bounds are added, whether they are there already or not"
            )]
        }
    })
}
