//! An `impl` block with `run`, and perhaps `activate` and `deactivate`, becomes a `Child`.
//!
//! The methods stay where they are, and may be simpler than the trait's: without the context, with
//! `&self`, and with any result that a worker may have. The trait's methods call them.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Ident, ImplItem, ImplItemFn, ItemImpl, Path, ReceiverKind, ReturnType, Type, parse_quote,
};

use super::bodies::Bodies;
use super::inbox::is_inbox_like;
use super::{
    BORROWS, TWICE, is_context, refuse_qualifiers, remove_qualifiers, typed, undeclared_lifetime,
};
use crate::args::Args;
use crate::attributes::{cfgs, take_second};
use crate::check;
use crate::errors::Errors;
use crate::keys::Place;
use crate::shown::{Shown, at};

/// The methods of the trait.
const METHODS: [&str; 3] = ["activate", "run", "deactivate"];

pub(crate) fn expand(args: TokenStream, mut block: ItemImpl, bodies: Bodies) -> TokenStream {
    let mut errors = Errors::default();
    if let Some(second) = take_second("worker", &mut block.attrs) {
        errors.at(second, TWICE);
    }
    let args = Args::parse(Place::Block, args, &mut errors);
    if let Some((path, _)) = &block.trait_ {
        errors.at(
            path,
            "`#[worker]` implements `Child` itself; write `impl` and the type alone, or implement \
             the trait by hand, with `#[async_trait]`",
        );
        let correct = by_hand(&block, &args.krate());
        let block = bodies.put_back(block.into_token_stream());
        let errors = errors.into_tokens();
        return quote!(#correct #block #errors);
    }
    check::spec(&args, &mut errors);
    check(&block, &mut errors);
    let correct = errors.is_empty();
    for method in methods_mut(&mut block) {
        if !correct {
            remove_qualifiers(&mut method.sig);
        }
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
    let child = child(&args, &block, correct);
    let block = bodies.put_back(block.into_token_stream());
    let errors = errors.into_tokens();
    quote!(#block #child #errors)
}

/// What makes a trait's `impl` block right, if it is one of an async trait.
fn by_hand(block: &ItemImpl, krate: &Path) -> TokenStream {
    let is_async = |item: &ImplItem| match item {
        ImplItem::Fn(method) => method.sig.asyncness.is_some(),
        _ => false,
    };
    let has_it = block.attrs.iter().any(|attribute| {
        attribute.path().segments.last().is_some_and(|last| last.ident == "async_trait")
    });
    if has_it || !block.items.iter().any(is_async) {
        return TokenStream::new();
    }
    quote!(#[#krate::async_trait])
}

fn methods(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if is_of_child(method) => Some(method),
        _ => None,
    })
}

fn methods_mut(block: &mut ItemImpl) -> impl Iterator<Item = &mut ImplItemFn> {
    block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(method) if is_of_child(method) => Some(method),
        _ => None,
    })
}

fn is_of_child(method: &ImplItemFn) -> bool {
    METHODS.iter().any(|name| method.sig.ident == name)
}

fn check(block: &ItemImpl, errors: &mut Errors) {
    let declared = block.generics.lifetimes().next().map(ToTokens::to_token_stream);
    if let Some(lifetime) = declared.or_else(|| undeclared_lifetime(&block.self_ty)) {
        errors.at(lifetime, BORROWS);
    }
    if !methods(block).any(|method| method.sig.ident == "run") {
        errors.at(
            &block.self_ty,
            "a worker needs a method `run`; add `async fn run(&mut self, ctx: &Context) -> Exit`",
        );
    }
    for method in methods(block) {
        signature(method, errors);
    }
}

/// Refuses methods that the trait's could not call.
fn signature(method: &ImplItemFn, errors: &mut Errors) {
    let signature = &method.sig;
    let name = &signature.ident;
    let example = format!("`async fn {name}(&mut self, ctx: &Context) -> Exit`");
    if signature.asyncness.is_none() {
        errors.at(signature.fn_token, format!("this must be an `async fn`; write {example}"));
    }
    refuse_qualifiers(signature, errors);
    match signature.receiver() {
        None => errors.at(name, format!("this needs `&mut self`; write {example}")),
        Some(receiver) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(..)) {
                errors
                    .at(receiver, format!("this must be `&mut self` or `&self`; write {example}"));
            }
        }
    }
    if let Some(param) = signature.generics.params.first() {
        errors.at(param, format!("`{name}` can't have parameters of its own; write {example}"));
    }
    // One that is in the way hides no other parameter's mistake.
    let (inboxes, others): (Vec<_>, Vec<_>) =
        typed(&signature.inputs).partition(|param| is_inbox_like(&param.ty));
    if let Some(inbox) = inboxes.first() {
        errors.at(
            inbox,
            format!(
                "`{name}` gets nothing but the context; keep the inbox in a field of the type, and \
                 make the child by `child_with_mailbox(\"db\", mailbox, |inbox| …)`"
            ),
        );
    }
    let mut params = others.into_iter();
    if let Some(first) = params.next() {
        let by_reference = match &*first.ty {
            Type::Reference(ty) => ty.mutability.is_none() && is_context(&ty.elem),
            _ => false,
        };
        if !by_reference {
            errors.at(&first.ty, format!("this must be `&Context`; write {example}"));
        }
    }
    if let Some(second) = params.next() {
        errors.at(
            second,
            format!(
                "`{name}` gets nothing but the context; keep this in a field of the type instead"
            ),
        );
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::Never(never) = &**ty
    {
        errors.at(never, format!("`{name}` returns nothing or `Exit`; remove `-> !`"));
    }
}

fn child(args: &Args, block: &ItemImpl, correct: bool) -> TokenStream {
    let krate = &args.krate();
    let mut generics = block.generics.clone();
    let (spec, methods) = if correct {
        (spec(args, krate), distinct(block).map(|method| forward(method, krate)).collect())
    } else {
        // Enough for what uses the type to be right.
        generics.make_where_clause().predicates.push(parse_quote!(Self: 'static));
        (TokenStream::new(), of_child(&parse_quote!(run), &quote!(_), krate, &quote!(loop {})))
    };
    let ItemImpl { self_ty, .. } = block;
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let cfgs = cfgs(&block.attrs);
    quote! {
        #(#cfgs)*
        impl #impl_generics #krate::Child for #self_ty #where_clause {
            #spec
            #methods
        }
    }
}

/// The trait's methods. There may be several of one name, if they are not there together.
fn distinct(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    methods(block).enumerate().filter_map(|(index, method)| {
        let mut before = methods(block).take(index);
        let is_first = before.all(|other| other.sig.ident != method.sig.ident);
        (is_first || !cfgs(&method.attrs).is_empty()).then_some(method)
    })
}

fn spec(args: &Args, krate: &Path) -> TokenStream {
    let options = args.calls(krate);
    if options.is_empty() {
        return TokenStream::new();
    }
    quote! {
        fn child_spec(__spec: #krate::ChildSpec) -> #krate::ChildSpec {
            __spec #options
        }
    }
}

/// A method of the trait that calls the type's own.
fn forward(method: &ImplItemFn, krate: &Path) -> TokenStream {
    let name = &method.sig.ident;
    let cfgs = cfgs(&method.attrs);
    // What is wrong with its future is wrong with what it returns.
    let shown = match &method.sig.output {
        ReturnType::Default => Shown::at(name),
        ReturnType::Type(_, ty) => Shown::at(ty),
    };
    let (ctx, arguments) = match typed(&method.sig.inputs).next() {
        Some(param) => {
            let ctx = Ident::new("__ctx", at(param.ty.span()));
            (quote!(#ctx), quote!(self, #ctx))
        }
        None => (quote!(_), quote!(self)),
    };
    let exit = shown.all(quote!(Self::#name(#arguments).await));
    let exit = shown.call(quote!(#krate::Outcome::into_exit), exit);
    let future = quote_spanned!(shown.first()=> async move { #exit });
    let body = shown.call(quote!(::std::boxed::Box::pin), future);
    let method = of_child(name, &ctx, krate, &body);
    quote!(#(#cfgs)* #method)
}

/// A method of the trait, as `async_trait` would write it, except that no name in it can mean
/// anything else where the block stands.
fn of_child(name: &Ident, ctx: &TokenStream, krate: &Path, body: &TokenStream) -> TokenStream {
    quote! {
        fn #name<'life0, 'life1, 'async_trait>(
            &'life0 mut self,
            #ctx: &'life1 #krate::Context,
        ) -> ::core::pin::Pin<::std::boxed::Box<
            dyn ::core::future::Future<Output = #krate::Exit> + ::core::marker::Send + 'async_trait
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
