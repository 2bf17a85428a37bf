//! The mailbox of a worker function, as `__mailbox`, and its address, as `__address`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Generics, parse_quote};

use super::calls::value_of;
use super::worker_call::function;
use crate::model::Inbox;
use crate::parse::{Args, Value};
use crate::paths::Krate;
use crate::span::{SpanRange, repeat};

/// Returns the type of the address. An unknown type of messages becomes a type parameter.
pub(super) fn address(inbox: &Inbox, krate: &Krate, generics: &mut Generics) -> TokenStream {
    let address = krate.item("mailbox::Address");
    if let Some(message) = &inbox.message {
        let message = repeat(message);
        return quote!(#address<#message>);
    }
    generics.params.push(parse_quote!(__M));
    quote!(#address<__M>)
}

/// Returns the statements that make the mailbox and set its options.
pub(super) fn mailbox(inbox: &Inbox, args: &Args, krate: &Krate) -> TokenStream {
    let Some(ty) = &inbox.message else { return TokenStream::new() };
    let message = repeat(ty);
    let capacity = args.value("capacity").map(|capacity| value_of(capacity, krate));
    let constructor = if capacity.is_some() { "mailbox_with_capacity" } else { "mailbox" };
    let constructor = SpanRange::of(ty).locate(krate.item(constructor));
    let made = quote!(let (__address, __mailbox) = #constructor::<#message>(#capacity););
    let Some(Value::Expression(options)) = args.value("mailbox") else { return made };
    let mailbox = krate.item("mailbox::Mailbox");
    let mailbox = quote!(#mailbox<#message>);
    let (range, function) = (SpanRange::of(options), function(options, &mailbox));
    let arguments = range.call(TokenStream::new(), range.locate(quote!(__mailbox)));
    quote! {
        #made
        let __mailbox: #mailbox = #function #arguments;
    }
}
