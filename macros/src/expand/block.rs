//! An `impl` block with `run`, and perhaps `activate` and `deactivate`, becomes a `Child`.
//!
//! The methods stay where they are, and the trait's methods call them. They may leave out the
//! context, take `&self`, and return any `Outcome`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ImplItem, ImplItemFn, ItemImpl, parse_quote};

use super::calls::calls;
use super::handlers;
use crate::attributes::cfgs;
use crate::model::{Bodies, Handler, child_methods, child_methods_mut, typed_params};
use crate::parse::Args;
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at};

/// Returns the block and the implementation of `Child`.
pub(crate) fn block(
    args: &Args,
    mut block: ItemImpl,
    handlers: &[Handler],
    bodies: Bodies,
    correct: bool,
) -> TokenStream {
    for method in child_methods_mut(&mut block) {
        method.attrs.push(parse_quote! {
            #[allow(
                clippy::unused_async,
                clippy::unused_self,
                clippy::unnecessary_wraps,
                clippy::needless_pass_by_ref_mut,
                reason = "the signature is that of `Child`"
            )]
        });
    }
    let child = if correct && args.get("blocking").is_some() {
        component(args, &block)
    } else {
        child(args, &block, handlers, correct)
    };
    let block = bodies.put_back(block.into_token_stream());
    quote!(#block #child)
}

/// Returns the block of a trait, with the `#[async_trait]` that it needs to compile.
pub(crate) fn foreign_trait(args: &Args, block: &ItemImpl, bodies: Bodies) -> TokenStream {
    let is_async = |item: &ImplItem| match item {
        ImplItem::Fn(method) => method.sig.asyncness.is_some(),
        _ => false,
    };
    let has_it = block.attrs.iter().any(|attribute| {
        attribute.path().segments.last().is_some_and(|last| last.ident == "async_trait")
    });
    let async_trait = (!has_it && block.items.iter().any(is_async)).then(|| {
        let async_trait = args.krate().item("async_trait");
        quote!(#[#async_trait])
    });
    let block = bodies.put_back(block.into_token_stream());
    quote!(#async_trait #block)
}

fn child(args: &Args, block: &ItemImpl, handlers: &[Handler], correct: bool) -> TokenStream {
    let krate = &args.krate();
    let mut generics = block.generics.clone();
    let (spec, methods) = if correct {
        (spec(args, krate), methods(block, handlers, krate))
    } else {
        // Enough for the code that uses the type.
        generics.make_where_clause().predicates.push(parse_quote!(Self: 'static));
        (TokenStream::new(), of_child(&parse_quote!(run), &quote!(_), krate, &quote!(loop {})))
    };
    let ItemImpl { self_ty, .. } = block;
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let cfgs = cfgs(&block.attrs);
    let child = krate.item("Child");
    quote! {
        #(#cfgs)*
        impl #impl_generics #child for #self_ty #where_clause {
            #spec
            #methods
        }
    }
}

/// Returns the implementation of `Component` for a type whose `run` blocks.
fn component(args: &Args, block: &ItemImpl) -> TokenStream {
    let krate = &args.krate();
    let ItemImpl { self_ty, .. } = block;
    let mut generics = block.generics.clone();
    // Of any other type, the body requires the same, with an error that underlines the type.
    if generics.type_params().next().is_some() {
        generics.make_where_clause().predicates.push(parse_quote! {
            Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static
        });
    }
    let own = SpanRange::of(self_ty);
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (cfgs, options) = (cfgs(&block.attrs), calls(args, krate));
    let [trait_, spec, blocking] =
        ["Component", "ChildSpec", "blocking"].map(|item| krate.item(item));
    let runs = distinct(block).map(|run| {
        let cfgs = self::cfgs(&run.attrs);
        let range = SpanRange::of_output(&run.sig);
        let ctx = typed_params(&run.sig.inputs).next().map(|_| quote!(, &__ctx));
        let call = range.call(quote!(Self::run), quote!(&mut __worker #ctx));
        let clone = own.call(quote!(::core::clone::Clone::clone), own.locate(quote!(&self)));
        let make = own.call(
            blocking.clone(),
            quote! {
                __name,
                move |__ctx| {
                    let mut __worker: Self = #clone;
                    #call
                }
            },
        );
        quote! {
            #(#cfgs)*
            fn into_spec(self, __name: ::std::string::String) -> #spec {
                #make #options
            }
        }
    });
    quote! {
        #(#cfgs)*
        impl #impl_generics #trait_ for #self_ty #where_clause {
            #(#runs)*
        }
    }
}

/// Returns the trait's methods, which call those of the type.
fn methods(block: &ItemImpl, handlers: &[Handler], krate: &Krate) -> TokenStream {
    if handlers.is_empty() {
        return distinct(block).map(|method| forward(method, krate)).collect();
    }
    let (activate, others): (Vec<_>, Vec<_>) =
        distinct(block).partition(|method| method.sig.ident == "activate");
    let body = handlers::activate(&activate, handlers, krate);
    let activate = of_child(&parse_quote!(activate), &quote!(__ctx), krate, &body);
    let others = others.into_iter().map(|method| forward(method, krate));
    quote!(#activate #(#others)*)
}

/// Returns the trait's methods. Several of one name are kept only if they have conditions.
fn distinct(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    child_methods(block).enumerate().filter_map(|(index, method)| {
        let mut before = child_methods(block).take(index);
        let is_first = before.all(|other| other.sig.ident != method.sig.ident);
        (is_first || !cfgs(&method.attrs).is_empty()).then_some(method)
    })
}

fn spec(args: &Args, krate: &Krate) -> TokenStream {
    let options = calls(args, krate);
    if options.is_empty() {
        return TokenStream::new();
    }
    let child_spec = krate.item("ChildSpec");
    quote! {
        fn child_spec(__spec: #child_spec) -> #child_spec {
            __spec #options
        }
    }
}

/// Returns a method of the trait that calls the type's own.
fn forward(method: &ImplItemFn, krate: &Krate) -> TokenStream {
    let name = &method.sig.ident;
    let cfgs = cfgs(&method.attrs);
    let range = SpanRange::of_output(&method.sig);
    let (ctx, arguments) = match typed_params(&method.sig.inputs).next() {
        Some(param) => {
            let ctx = Ident::new("__ctx", generated_at(param.ty.span()));
            (quote!(#ctx), quote!(self, #ctx))
        }
        None => (quote!(_), quote!(self)),
    };
    let outcome = krate.item("Outcome");
    let exit = range.locate(quote!(Self::#name(#arguments).await));
    let exit = range.call(quote!(#outcome::into_exit), exit);
    let future = quote_spanned!(range.first()=> async move { #exit });
    let body = range.call(quote!(::std::boxed::Box::pin), future);
    let method = of_child(name, &ctx, krate, &body);
    quote!(#(#cfgs)* #method)
}

/// Returns a method of the trait as `async_trait` would generate it, with full paths.
fn of_child(name: &Ident, ctx: &TokenStream, krate: &Krate, body: &TokenStream) -> TokenStream {
    let (context, exit) = (krate.item("Context"), krate.item("Exit"));
    quote! {
        fn #name<'life0, 'life1, 'async_trait>(
            &'life0 mut self,
            #ctx: &'life1 #context,
        ) -> ::core::pin::Pin<::std::boxed::Box<
            dyn ::core::future::Future<Output = #exit> + ::core::marker::Send + 'async_trait
        >>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        {
            #body
        }
    }
}
