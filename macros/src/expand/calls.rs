//! Keys become the calls of a builder's or a spec's methods, and their values the arguments.

use std::time::Duration;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use crate::keys::Place;
use crate::parse::{Arg, Args, Backoff, Value};
use crate::span::{Krate, SpanRange, generated_at};

/// Returns the calls for all keys.
pub(super) fn calls(args: &Args, krate: &Krate) -> TokenStream {
    args.iter().map(|arg| call(args, arg, krate)).collect()
}

/// Returns the calls on a dynamic supervisor's builder, and those on the spec that it becomes.
pub(super) fn split(args: &Args, krate: &Krate) -> (TokenStream, TokenStream) {
    let calls_of = |of_child| -> TokenStream {
        let args_of = args.iter().filter(move |arg| arg.key.is_of_child() == of_child);
        args_of.map(|arg| call(args, arg, krate)).collect()
    };
    let mut of_child = calls_of(true);
    of_child.extend(args.group("child").map(|itself| calls(itself, krate)));
    (calls_of(false), of_child)
}

fn call(args: &Args, arg: &Arg, krate: &Krate) -> TokenStream {
    let ident = &arg.ident;
    let argument = |key| args.value(key).map(|value| value_of(value, krate));
    match (&arg.value, arg.key.name) {
        (Value::Type(ty), _) => config(args, ident, ty, krate),
        // Part of the call for `config`, or of the constructor.
        _ if arg.key.is_of_config() || arg.key.is_of_schedule() => TokenStream::new(),
        (Value::Group(defaults), "defaults") => {
            let calls = calls(defaults, krate);
            quote!(.#ident(|__child| __child #calls))
        }
        (Value::Group(restarts), "own_restarts") => {
            let [max, period] = ["max", "period"]
                .map(|key| restarts.value(key).map(|value| value_of(value, krate)));
            quote!(.#ident(#max, #period))
        }
        // No calls: the name and where it runs go to the constructor, the period to `restarts`,
        // `child(…)` to the spec, and the rest to the mailbox and to all paths.
        (
            _,
            "name" | "crate" | "period" | "child" | "capacity" | "mailbox" | "blocking" | "local",
        )
        | (Value::Invalid, _) => TokenStream::new(),
        (Value::Names(names), _) => quote!(#(.#ident(#names))*),
        (Value::Functions(functions), _) => quote!(#(.#ident(#functions))*),
        (_, "max_restarts") => {
            let (max, period) = (argument("max_restarts"), argument("period"));
            let restarts = Ident::new("restarts", ident.span());
            quote!(.#restarts(#max, #period))
        }
        (value, "drain") => {
            let (shutdown, grace) = (Ident::new("shutdown", ident.span()), value_of(value, krate));
            let drain = krate.item_at("Shutdown::Drain", generated_at(ident.span()));
            quote!(.#shutdown(#drain(#grace)))
        }
        (value, "backoff") if args.place == Place::Supervisor => {
            let value = value_of(value, krate);
            quote!(.defaults(|__child| __child.#ident(#value)))
        }
        (value, _) => {
            let value = value_of(value, krate);
            quote!(.#ident(#value))
        }
    }
}

/// Returns the call for `config`, with those for the other keys as its argument.
///
/// The path is located at the key, because it doesn't exist without the feature `config`. The rest is located at
/// the type, which has to meet the bounds of `new`.
fn config(args: &Args, key: &Ident, ty: &Type, krate: &Krate) -> TokenStream {
    let child_config = SpanRange::of(key).locate(krate.item("config::ChildConfig"));
    let new = quote_spanned!(SpanRange::of(ty).first()=> #child_config::<#ty>::new());
    let options = args.iter().filter(|arg| arg.key.is_of_config() && arg.key.name != "config");
    let options = options.map(|arg| {
        let method = match arg.key.name {
            "config_section" => &Ident::new("section", arg.ident.span()),
            _ => &arg.ident,
        };
        let value = value_of(&arg.value, krate);
        quote!(.#method(#value))
    });
    quote_spanned!(generated_at(key.span())=> .#key(#new #(#options)*))
}

/// Returns a value as the argument of a method.
pub(super) fn value_of(value: &Value, krate: &Krate) -> TokenStream {
    match value {
        Value::Flag | Value::Invalid | Value::Group(_) => TokenStream::new(),
        Value::Word(ty, variant) => {
            let (ty, span) = (krate.item_at(ty, variant.span()), variant.span());
            quote_spanned!(span=> #ty::#variant)
        }
        Value::Duration(value, span) => duration(*value, *span),
        Value::Backoff(value) => backoff(value, krate),
        Value::Name(name) => name.to_token_stream(),
        Value::Names(names) => quote!(#(#names),*),
        Value::Functions(functions) => quote!(#(#functions),*),
        Value::Path(path) => path.to_token_stream(),
        Value::Type(ty) => ty.to_token_stream(),
        Value::Expression(expr) => expr.to_token_stream(),
    }
}

/// Returns a duration in its largest whole unit.
fn duration(duration: Duration, span: Span) -> TokenStream {
    let (unit, number) = match duration.subsec_nanos() {
        0 => ("from_secs", duration.as_secs().into()),
        nanos if nanos.is_multiple_of(1_000_000) => ("from_millis", duration.as_millis()),
        _ => ("from_nanos", duration.as_nanos()),
    };
    let span = generated_at(span);
    let (unit, number) = (Ident::new(unit, span), Literal::u128_unsuffixed(number));
    quote_spanned!(span=> ::core::time::Duration::#unit(#number))
}

fn backoff(backoff: &Backoff, krate: &Krate) -> TokenStream {
    let first = backoff.curve.first;
    // The first delay of a linear backoff is also the step by which it grows.
    let step = first.filter(|first| *first == "base");
    let delays = first.into_iter().chain(step).chain(["max"]);
    let delays = delays.filter_map(|name| backoff.delay(name));
    let delays = delays.map(|delay| value_of(&delay, krate));
    let methods = backoff.settings.iter().filter(|arg| matches!(arg.key.name, "factor" | "jitter"));
    let methods = methods.map(|arg| call(&backoff.settings, arg, krate));
    let ty = krate.item("Backoff");
    let constructor = Ident::new(backoff.curve.name, generated_at(backoff.span));
    quote!(#ty::#constructor(#(#delays),*) #(#methods)*)
}
