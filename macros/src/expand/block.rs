//! An `impl` block with `run`, and perhaps `activate` and `deactivate`, becomes a `Child`.
//!
//! The methods stay where they are, and the trait's methods call them. They may leave out the
//! context, take `&self`, and return any `Outcome`. Methods with `#[on]` are registered when the component has been
//! activated.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ImplItem, ImplItemFn, ItemImpl, WherePredicate, parse_quote};

use super::calls::{calls, value_of};
use crate::attributes::cfgs;
use crate::model::{Bodies, Handler, child_methods, is_of_child, typed_params};
use crate::parse::Args;
use crate::span::{Krate, SpanRange, generated_at};

/// Returns the block and the implementation of `Child`.
pub(crate) fn block(
    args: &Args,
    mut block: ItemImpl,
    handlers: &[Handler],
    bodies: Bodies,
    correct: bool,
) -> TokenStream {
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        if !is_of_child(method) {
            continue;
        }
        // The trait fixes the signature, so a method may trigger any of these lints, or none that could be expected.
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
    let has_it = block.attrs.iter().any(|attribute| {
        attribute.path().segments.last().is_some_and(|last| last.ident == "async_trait")
    });
    let async_trait = (!has_it).then(|| {
        let async_trait = args.krate().item("async_trait");
        quote!(#[#async_trait])
    });
    let block = bodies.put_back(block.into_token_stream());
    quote!(#async_trait #block)
}

fn child(args: &Args, block: &ItemImpl, handlers: &[Handler], correct: bool) -> TokenStream {
    let krate = &args.krate();
    let child = krate.item("Child");
    if correct {
        let (spec, methods) = (spec(args, krate), methods(block, handlers, krate));
        return implementation(block, &child, None, &quote!(#spec #methods));
    }
    // Enough for the code that uses the type.
    let run = of_child(&parse_quote!(run), &quote!(_), krate, &quote!(loop {}));
    implementation(block, &child, Some(parse_quote!(Self: 'static)), &run)
}

/// Returns the implementation of `Component` for a type whose `run` blocks.
fn component(args: &Args, block: &ItemImpl) -> TokenStream {
    let krate = &args.krate();
    // Of any other type, the body requires the same, with an error that underlines the type.
    let bound = block.generics.type_params().next().map(|_| {
        parse_quote! {
            Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static
        }
    });
    let own = SpanRange::of(&block.self_ty);
    let options = calls(args, krate);
    let [component, spec, blocking] =
        ["spec::Component", "ChildSpec", "blocking"].map(|item| krate.item(item));
    let runs = distinct(block).map(|run| {
        let cfgs = cfgs(&run.attrs);
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
    implementation(block, &component, bound, &quote!(#(#runs)*))
}

/// Returns an implementation of a trait for the type of the block.
fn implementation(
    block: &ItemImpl,
    of: &TokenStream,
    bound: Option<WherePredicate>,
    items: &TokenStream,
) -> TokenStream {
    let ItemImpl { self_ty, .. } = block;
    let mut generics = block.generics.clone();
    if let Some(bound) = bound {
        generics.make_where_clause().predicates.push(bound);
    }
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let cfgs = cfgs(&block.attrs);
    quote! {
        #(#cfgs)*
        impl #impl_generics #of for #self_ty #where_clause {
            #items
        }
    }
}

/// Returns the trait's methods, which call those of the type.
fn methods(block: &ItemImpl, handlers: &[Handler], krate: &Krate) -> TokenStream {
    let has_handlers = !handlers.is_empty();
    let (activate, others): (Vec<_>, Vec<_>) =
        distinct(block).partition(|method| has_handlers && method.sig.ident == "activate");
    let activate = has_handlers.then(|| {
        let body = self::activate(&activate, handlers, krate);
        of_child(&parse_quote!(activate), &quote!(__ctx), krate, &body)
    });
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
    let cfgs = cfgs(&method.attrs);
    let range = SpanRange::of_output(&method.sig);
    let ctx = match typed_params(&method.sig.inputs).next() {
        Some(param) => Ident::new("__ctx", generated_at(param.ty.span())).into_token_stream(),
        None => quote!(_),
    };
    let exit = exit(method, &ctx, krate);
    let future = quote_spanned!(range.first()=> async move { #exit });
    let body = range.call(quote!(::std::boxed::Box::pin), future);
    let method = of_child(&method.sig.ident, &ctx, krate, &body);
    quote!(#(#cfgs)* #method)
}

/// Returns a call of one of the type's methods, which may leave out the context.
fn exit(method: &ImplItemFn, ctx: &TokenStream, krate: &Krate) -> TokenStream {
    let name = &method.sig.ident;
    let range = SpanRange::of_output(&method.sig);
    let outcome = krate.item("exit::Outcome");
    let ctx = typed_params(&method.sig.inputs).next().map(|_| quote!(, #ctx));
    let exit = range.locate(quote!(Self::#name(self #ctx).await));
    range.call(quote!(#outcome::into_exit), exit)
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

/// Returns the body of the trait's `activate`: that of the type, if it has one, and then the registrations.
fn activate(own: &[&ImplItemFn], handlers: &[Handler], krate: &Krate) -> TokenStream {
    let own = own.iter().map(|method| {
        let (cfgs, exit) = (cfgs(&method.attrs), exit(method, &quote!(__ctx), krate));
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
