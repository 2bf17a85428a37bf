//! Methods with `#[on]` are registered when the component has been activated.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ImplItemFn;

use super::calls::value_of;
use crate::attributes::cfgs;
use crate::model::{Handler, typed_params};
use crate::paths::Krate;
use crate::span::SpanRange;

/// Returns the body of the trait's `activate`: that of the type, if it has one, and then the registrations.
pub(super) fn activate(own: &[&ImplItemFn], handlers: &[Handler], krate: &Krate) -> TokenStream {
    let own = own.iter().map(|method| {
        let (cfgs, outcome) = (cfgs(&method.attrs), krate.item("Outcome"));
        let range = SpanRange::of_output(&method.sig);
        let name = &method.sig.ident;
        let takes_context = typed_params(&method.sig.inputs).next().is_some();
        let arguments = if takes_context { quote!(self, __ctx) } else { quote!(self) };
        let exit = range
            .call(quote!(#outcome::into_exit), range.locate(quote!(Self::#name(#arguments).await)));
        quote!(#(#cfgs)* { #exit?; })
    });
    let registrations = handlers.iter().map(|handler| registration(handler, krate));
    quote! {
        ::std::boxed::Box::pin(async move {
            #(#own)*
            #(#registrations)*
            ::core::result::Result::Ok(())
        })
    }
}

fn registration(handler: &Handler, krate: &Krate) -> TokenStream {
    let name = &handler.method.sig.ident;
    let cfgs = cfgs(&handler.method.attrs);
    let context = krate.item("Context");
    let options = handler.options.iter().map(|option| {
        let (method, argument) = (&option.ident, value_of(&option.value, krate));
        let refused = (method == "channel").then(|| quote!(?));
        quote!(.#method(#argument) #refused)
    });
    let Some(event) = handler.event() else { return TokenStream::new() };
    let ctx = handler.takes_context().then(|| quote!(&__ctx,));
    let range = SpanRange::of(event);
    let closure = quote! {
        move |__event: #event| {
            let (__itself, __ctx) =
                (::core::clone::Clone::clone(&__itself), ::core::clone::Clone::clone(&__ctx));
            async move { Self::#name(&__itself, #ctx __event).await }
        }
    };
    let on = range.locate(quote!(__bus.on));
    quote! {
        #(#cfgs)*
        {
            let __bus = #context::bus(__ctx) #(#options)*;
            let (__itself, __ctx) =
                (<Self as ::core::clone::Clone>::clone(&*self), ::core::clone::Clone::clone(__ctx));
            let _ = #on(#closure);
        }
    }
}
