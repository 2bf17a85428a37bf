//! Bounds that an expansion adds, beside the bounds of the same type.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{
    GenericParam, Generics, Ident, Token, Type, TypeParamBound, WherePredicate, parse_quote,
};

use crate::span::repeat;

pub(crate) type Bounds = Punctuated<TypeParamBound, Token![+]>;

/// Adds bounds to a type, which is a type parameter or contains some.
pub(crate) fn require(generics: &mut Generics, ty: &Type, bounds: Bounds) {
    let ident = match ty {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    };
    if let Some(own) = ident.and_then(|ident| own(generics, ident)) {
        own.extend(bounds);
        return;
    }
    let ty = repeat(ty);
    generics.make_where_clause().predicates.push(parse_quote!(#ty: #bounds));
}

/// Returns the bounds of a type parameter.
fn own<'a>(generics: &'a mut Generics, ident: &Ident) -> Option<&'a mut Bounds> {
    let param = generics.params.iter_mut().find_map(|param| match param {
        GenericParam::Type(param) if param.ident == *ident => Some(param),
        _ => None,
    })?;
    if !param.bounds.is_empty() {
        return Some(&mut param.bounds);
    }
    let mut clause = generics.where_clause.iter_mut().flat_map(|clause| &mut clause.predicates);
    let own = clause.find_map(|predicate| match predicate {
        WherePredicate::Type(predicate) if is(&predicate.bounded_ty, ident) => {
            Some(&mut predicate.bounds)
        }
        _ => None,
    });
    Some(own.unwrap_or(&mut param.bounds))
}

fn is(ty: &Type, ident: &Ident) -> bool {
    *ident == ty.to_token_stream().to_string()
}
