//! Values become the arguments of methods.

use std::time::Duration;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::parse::{Backoff, Scalar, Value};
use crate::paths::Krate;
use crate::span::generated_at;

pub(super) fn value(value: &Value, krate: &Krate) -> TokenStream {
    match value {
        Value::Word(ty, variant) => {
            let (ty, span) = (krate.item_at(ty, variant.span()), variant.span());
            quote_spanned!(span=> #ty::#variant)
        }
        Value::Scalar(value) => scalar(value),
        Value::Backoff(value) => backoff(value, krate),
        Value::Name(name) => name.to_token_stream(),
        Value::Names(names) => quote!(#(#names),*),
        Value::Functions(functions) => quote!(#(#functions),*),
        Value::Path(path) => path.to_token_stream(),
        Value::Type(ty) => ty.to_token_stream(),
        Value::Expression(expr) => expr.to_token_stream(),
    }
}

fn scalar(scalar: &Scalar) -> TokenStream {
    match scalar {
        Scalar::Duration(value, span) => duration(*value, *span),
        Scalar::Expression(expr) => expr.to_token_stream(),
    }
}

/// Returns a duration in its largest whole unit.
fn duration(duration: Duration, span: Span) -> TokenStream {
    let span = generated_at(span);
    let secs = Literal::u64_unsuffixed(duration.as_secs());
    let nanos = duration.subsec_nanos();
    match u64::try_from(duration.as_millis()).map(Literal::u64_unsuffixed) {
        _ if nanos == 0 => quote_spanned!(span=> ::core::time::Duration::from_secs(#secs)),
        Ok(millis) if nanos.is_multiple_of(1_000_000) => {
            quote_spanned!(span=> ::core::time::Duration::from_millis(#millis))
        }
        _ => {
            let nanos = Literal::u32_unsuffixed(nanos);
            quote_spanned!(span=> ::core::time::Duration::new(#secs, #nanos))
        }
    }
}

fn backoff(backoff: &Backoff, krate: &Krate) -> TokenStream {
    let delay = |name| backoff.delay(name).as_ref().map(scalar);
    let arguments = match backoff.curve.name {
        "exponential" => vec![delay("min"), delay("max")],
        // The first delay is also the step by which it grows.
        "linear" => vec![delay("base"), delay("base"), delay("max")],
        _ => vec![delay("delay")],
    };
    let arguments = arguments.into_iter().flatten();
    let is_method = |key: &Ident| key == "factor" || key == "jitter";
    let methods = backoff.settings.iter().filter(|(key, _)| is_method(key));
    let methods = methods.map(|(method, argument)| {
        let argument = scalar(argument);
        quote!(.#method(#argument))
    });
    let ty = krate.item("Backoff");
    let constructor = Ident::new(backoff.curve.name, generated_at(backoff.span));
    quote!(#ty::#constructor(#(#arguments),*) #(#methods)*)
}
