//! An `async fn` becomes a constructor of the same name.
//!
//! The parameters besides the `Context`, the `Inbox` and each `Service` are the constructor's. They are
//! cloned for each incarnation.

use proc_macro2::{Delimiter, Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, ItemFn, PatType, Signature, Type, Visibility, parse_quote};

use super::calls::calls;
use super::mailbox;
use super::worker_call::WorkerCall;
use crate::bounds::{Bounds, allow_added_bounds, require};
use crate::model::{
    Argument, Bodies, Params, inferred, is_generic, is_inbox, is_service, only_argument,
    typed_params,
};
use crate::parse::Args;
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at, group};

/// Returns the constructor, which contains the function.
pub(crate) fn function(
    args: &Args,
    mut function: ItemFn,
    bodies: Bodies,
    correct: bool,
) -> TokenStream {
    let krate = &args.krate();
    let (outer, inner) = split(std::mem::take(&mut function.attrs));
    function.attrs = inner;
    let vis = std::mem::replace(&mut function.vis, Visibility::Inherited);
    let bounded = allow_added_bounds(&function.sig.generics);
    require_clones(&mut function.sig);
    let mut signature = function.sig.clone();
    let ident = signature.ident.clone();
    function.sig.ident = format_ident!("__{}", ident.unraw(), span = generated_at(ident.span()));

    let params = Params::of(&signature);
    constructor_signature(&mut signature, &params, krate, correct);
    // The function of an inbox or a service without its type would be reported a second time.
    let lacks_type = |param: &PatType| is_service(&param.ty) && only_argument(&param.ty).is_err();
    let is_kept = params.inbox().is_none_or(|inbox| inbox.message.is_some())
        && !typed_params(&function.sig.inputs).any(lacks_type);
    let result =
        if correct { result(args, &function, &ident, params, krate) } else { quote!(loop {}) };
    let span = function.block.brace_token.span.join();
    let function = is_kept.then(|| {
        let function = bodies.put_back(function.into_token_stream());
        let lints = if args.get("blocking").is_some() {
            quote!(#[allow(clippy::needless_pass_by_value, reason = "a worker owns its arguments")])
        } else {
            quote!(#[allow(clippy::unused_async, reason = "a worker has to be an `async fn`")])
        };
        quote!(#lints #function)
    });
    // With the span of the user's body, the compiler reports a worker that is never used.
    let body = group(Delimiter::Brace, quote!(#function #result), span);
    quote! {
        #(#outer)*
        #bounded
        #vis #signature #body
    }
}

/// Turns the function's signature into the constructor's.
fn constructor_signature(signature: &mut Signature, params: &Params, krate: &Krate, correct: bool) {
    let inputs = params.arguments().map(|Argument { name, ty }| -> FnArg {
        if correct { parse_quote!(#name: #ty) } else { parse_quote!(_: #ty) }
    });
    signature.inputs = inputs.collect();
    signature.asyncness = None;
    let child_spec = krate.item("ChildSpec");
    signature.output = match params.inbox() {
        None => parse_quote!(-> #child_spec),
        Some(inbox) => {
            let address = mailbox::address(inbox, krate, &mut signature.generics);
            parse_quote!(-> (#child_spec, #address))
        }
    };
}

/// Returns the expression that the constructor returns.
fn result(
    args: &Args,
    function: &ItemFn,
    ident: &Ident,
    params: Params,
    krate: &Krate,
) -> TokenStream {
    let name = args.name_or(&ident.unraw().to_string(), ident.span());
    let range = SpanRange::of_output(&function.sig);
    let (run, turbofish) = (&function.sig.ident, turbofish(function));
    let mailbox = params.inbox().map(|inbox| mailbox::mailbox(inbox, args, krate));
    let call = WorkerCall { krate, name, run: quote!(#run #turbofish), params, range };
    let (spec, options) = (call.spec(args), calls(args, krate));
    match mailbox {
        None => quote!(#spec #options),
        Some(mailbox) => quote!(#mailbox let __spec = #spec #options; (__spec, __address)),
    }
}

/// Splits attributes into those of the constructor and those of the function.
///
/// Documentation, conditions and lint levels go to the constructor; what changes how the function
/// runs stays with the function.
fn split(attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    const OUTER: [&str; 9] =
        ["doc", "cfg", "deprecated", "must_use", "allow", "expect", "warn", "deny", "forbid"];
    let is_outer = |attribute: &Attribute| OUTER.iter().any(|name| attribute.path().is_ident(name));
    attributes.into_iter().partition(is_outer)
}

/// Adds the bounds that a restart needs to parameters of generic types.
fn require_clones(signature: &mut Signature) {
    let bounds: Bounds =
        parse_quote!(::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static);
    let of_message: Bounds = parse_quote!(::core::marker::Send + 'static);
    for param in signature.inputs.iter_mut() {
        let FnArg::Typed(PatType { ty, .. }) = param else { continue };
        let (ty, bounds) = if is_inbox(ty) {
            (only_argument(ty).ok(), &of_message)
        } else if is_service(ty) {
            (only_argument(ty).ok(), &bounds)
        } else if let Type::ImplTrait(anonymous) = &mut **ty {
            // A type without a name can't have bounds in a `where` clause.
            anonymous.bounds.extend(bounds.clone());
            continue;
        } else {
            (Some(&**ty), &bounds)
        };
        if let Some(ty) = ty.filter(|ty| is_generic(ty, &signature.generics)) {
            require(&mut signature.generics, ty, bounds);
        }
    }
}

/// Returns the generic arguments, which the compiler couldn't infer.
fn turbofish(function: &ItemFn) -> TokenStream {
    let params: Vec<_> = inferred(&function.sig.generics).collect();
    if params.is_empty() { TokenStream::new() } else { quote!(::<#(#params),*>) }
}
