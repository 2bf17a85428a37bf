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
use super::periodic::{Run, Schedule};
use super::worker_call::{Argument, WorkerCall};
use crate::bounds::{Bounds, allow_added_bounds, require};
use crate::model::{
    Bodies, InboxParam, ServiceParam, inferred, is_context_or_borrow, is_generic, is_inbox,
    is_run_context, is_service, param_name, typed_params, value_type,
};
use crate::parse::Args;
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at, group};

/// The special parameters of a function, and the arguments of its constructor.
struct Params {
    /// The name of the context.
    context: Option<Ident>,
    /// Whether that is the context of a run.
    of_run: bool,
    inbox: Option<InboxParam>,
    services: Vec<ServiceParam>,
    arguments: Vec<Argument>,
}

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

    let params = params(&signature);
    constructor_signature(&mut signature, &params, krate, correct);
    // The function of an inbox or a service without its type would be reported a second time.
    let lacks_type = |param: &PatType| is_service(&param.ty) && value_type(&param.ty).is_none();
    let is_kept = params.inbox.as_ref().is_none_or(|inbox| inbox.message.is_some())
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

fn params(signature: &Signature) -> Params {
    let mut params = typed_params(&signature.inputs).cloned().peekable();
    let first =
        params.next_if(|first| is_context_or_borrow(&first.ty) || is_run_context(&first.ty));
    let of_run = first.as_ref().is_some_and(|first| is_run_context(&first.ty));
    // A context in another place is reported.
    let params: Vec<_> = params.filter(|param| !is_context_or_borrow(&param.ty)).collect();
    let (inbox, services) = (InboxParam::find(&params), ServiceParam::find(&params));
    let is_argument = |param: &PatType| !is_inbox(&param.ty) && !is_service(&param.ty);
    let params = params.into_iter().filter(is_argument);
    let arguments = params.zip(1..).map(|(param, number)| {
        let name = param_name(&param, &format!("argument_{number}"));
        Argument { name, ty: *param.ty }
    });
    let context = first.map(|first| param_name(&first, "__ctx"));
    Params { context, of_run, inbox, services, arguments: arguments.collect() }
}

/// Turns the function's signature into the constructor's.
fn constructor_signature(signature: &mut Signature, params: &Params, krate: &Krate, correct: bool) {
    let inputs = params.arguments.iter().map(|Argument { name, ty }| -> FnArg {
        if correct { parse_quote!(#name: #ty) } else { parse_quote!(_: #ty) }
    });
    signature.inputs = inputs.collect();
    signature.asyncness = None;
    let child_spec = krate.item("ChildSpec");
    signature.output = match &params.inbox {
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
    let run = quote!(#run #turbofish);
    let Params { context, of_run, inbox, services, arguments } = params;
    if let Some(schedule) = Schedule::of(args) {
        let run = Run { run, context, of_run, services, arguments, range };
        let (call, options) = (schedule.call(&name, &run, krate), calls(args, krate));
        return quote!(#call #options);
    }
    let mailbox = inbox.as_ref().map(|inbox| mailbox::mailbox(inbox, args, krate));
    let constructor = ["blocking", "local"].into_iter().find(|key| args.get(key).is_some());
    let call =
        WorkerCall { krate, name, run, context, inbox, services, arguments, constructor, range };
    let options = calls(args, krate);
    match mailbox {
        None => quote!(#call #options),
        Some(mailbox) => quote!(#mailbox let __spec = #call #options; (__spec, __address)),
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
    for param in signature.inputs.iter_mut() {
        let FnArg::Typed(PatType { ty, .. }) = param else { continue };
        if is_inbox(ty) {
            mailbox::require_send(ty, &mut signature.generics);
        } else if is_service(ty) {
            let value = value_type(ty).filter(|value| is_generic(value, &signature.generics));
            if let Some(value) = value {
                require(&mut signature.generics, &value, &bounds);
            }
        } else if let Type::ImplTrait(anonymous) = &mut **ty {
            // A type without a name can't have bounds in a `where` clause.
            anonymous.bounds.extend(bounds.clone());
        } else if is_generic(ty, &signature.generics) {
            require(&mut signature.generics, ty, &bounds);
        }
    }
}

/// Returns the generic arguments, which the compiler couldn't infer.
fn turbofish(function: &ItemFn) -> TokenStream {
    let params: Vec<_> = inferred(&function.sig.generics).collect();
    if params.is_empty() { TokenStream::new() } else { quote!(::<#(#params),*>) }
}
