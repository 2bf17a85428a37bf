//! The mailbox of a worker function, as `__mailbox`, and its address, as `__address`.

use proc_macro2::{Delimiter, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, ExprClosure, Generics, Pat, Type, parse_quote};

use super::values;
use crate::bounds::require;
use crate::model::{InboxParam, is_generic, message_type};
use crate::parse::{Args, Value};
use crate::paths::Krate;
use crate::span::{SpanRange, group, repeat};

/// Returns the type of the address. An unknown type of messages becomes a type parameter.
pub(super) fn address(inbox: &InboxParam, krate: &Krate, generics: &mut Generics) -> TokenStream {
    let address = krate.item("mailbox::Address");
    if let Some(message) = &inbox.message {
        let message = repeat(message);
        return quote!(#address<#message>);
    }
    generics.params.push(parse_quote!(__M));
    quote!(#address<__M>)
}

/// Returns the statements that make the mailbox and set its options.
pub(super) fn mailbox(inbox: &InboxParam, args: &Args, krate: &Krate) -> TokenStream {
    let Some(ty) = &inbox.message else { return TokenStream::new() };
    let message = repeat(ty);
    let capacity = args.value("capacity").map(|capacity| values::value(capacity, krate));
    let function = if capacity.is_some() { "mailbox_with_capacity" } else { "mailbox" };
    let function = SpanRange::of(ty).locate(krate.item(function));
    let made = quote!(let (__address, __mailbox) = #function::<#message>(#capacity););
    let Some(Value::Expression(options)) = args.value("mailbox") else { return made };
    let range = SpanRange::of(options);
    let mailbox = krate.item("mailbox::Mailbox");
    let mailbox = quote!(#mailbox<#message>);
    let function = match options {
        Expr::Path(path) => path.to_token_stream(),
        Expr::Closure(closure) => in_parentheses(range, with_type(closure, &mailbox)),
        other => in_parentheses(range, other),
    };
    let arguments = range.call(TokenStream::new(), range.locate(quote!(__mailbox)));
    quote! {
        #made
        let __mailbox: #mailbox = #function #arguments;
    }
}

pub(super) fn in_parentheses(range: SpanRange, function: impl ToTokens) -> TokenStream {
    group(Delimiter::Parenthesis, function.into_token_stream(), range.first()).into_token_stream()
}

/// Adds the type of the parameter to a closure, which can't be inferred where it is called directly.
pub(super) fn with_type(closure: &ExprClosure, ty: &TokenStream) -> ExprClosure {
    let mut closure = closure.clone();
    for param in &mut closure.inputs {
        if !matches!(param, Pat::Type(_)) {
            let pat = param.clone();
            *param = Pat::Type(parse_quote!(#pat: #ty));
        }
    }
    closure
}

/// Requires that messages of a generic type are `Send`.
pub(super) fn require_send(ty: &Type, generics: &mut Generics) {
    if let Ok(message) = message_type(ty)
        && is_generic(&message, generics)
    {
        require(generics, &message, &parse_quote!(::core::marker::Send + 'static));
    }
}
