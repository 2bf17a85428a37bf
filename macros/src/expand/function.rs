//! An `async fn` becomes a constructor of the same name.
//!
//! The parameters besides the `Context`, the `Inbox` and each `Service` are the constructor's. They are
//! cloned for each incarnation. The mailbox of an inbox is `__mailbox` in the constructor, and its address `__address`.

use proc_macro2::{Delimiter, Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Generics, ItemFn, PatType, Signature, Type, Visibility, parse_quote};

use super::calls::{calls, value_of};
use super::worker_call::{self, WorkerCall};
use crate::attributes::{Bounds, allow_added_bounds, require};
use crate::model::{
    Argument, Bodies, Inbox, Params, inferred, is_generic, is_inbox, is_service, only_argument,
    typed_params,
};
use crate::parse::{Args, Value};
use crate::span::{Krate, SpanRange, generated_at, group, repeat};

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
    let lacks_type = |param: &PatType| is_service(&param.ty) && only_argument(&param.ty).is_none();
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
            let address = address(inbox, krate, &mut signature.generics);
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
    let mailbox = params.inbox().map(|inbox| self::mailbox(inbox, args, krate));
    let call = WorkerCall { krate, name, run: quote!(#run #turbofish), params, range };
    let (spec, options) = (call.spec(args), calls(args, krate));
    match mailbox {
        None => quote!(#spec #options),
        Some(mailbox) => quote!(#mailbox let __spec = #spec #options; (__spec, __address)),
    }
}

/// Returns the type of the address. An unknown type of messages becomes a type parameter.
fn address(inbox: &Inbox, krate: &Krate, generics: &mut Generics) -> TokenStream {
    let address = krate.item("mailbox::Address");
    if let Some(message) = &inbox.message {
        let message = repeat(message);
        return quote!(#address<#message>);
    }
    generics.params.push(parse_quote!(__M));
    quote!(#address<__M>)
}

/// Returns the statements that make the mailbox and set its options.
fn mailbox(inbox: &Inbox, args: &Args, krate: &Krate) -> TokenStream {
    let Some(ty) = &inbox.message else { return TokenStream::new() };
    let message = repeat(ty);
    let capacity = args.value("capacity").map(|capacity| value_of(capacity, krate));
    let constructor = if capacity.is_some() { "mailbox_with_capacity" } else { "mailbox" };
    let constructor = SpanRange::of(ty).locate(krate.item(constructor));
    let made = quote!(let (__address, __mailbox) = #constructor::<#message>(#capacity););
    let Some(Value::Expression(options)) = args.value("mailbox") else { return made };
    let mailbox = krate.item("mailbox::Mailbox");
    let mailbox = quote!(#mailbox<#message>);
    let (range, function) = (SpanRange::of(options), worker_call::function(options, &mailbox));
    let arguments = range.call(TokenStream::new(), range.locate(quote!(__mailbox)));
    quote! {
        #made
        let __mailbox: #mailbox = #function #arguments;
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
            (only_argument(ty), &of_message)
        } else if is_service(ty) {
            (only_argument(ty), &bounds)
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
