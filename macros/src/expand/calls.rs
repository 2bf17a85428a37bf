//! Keys become the calls of a builder's or a spec's methods.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::config::config;
use super::values;
use crate::keys::Place;
use crate::parse::{Arg, Args, Setting, Value};
use crate::paths::Krate;

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
    match (&arg.setting, arg.key.name) {
        (Setting::Value(Value::Type(ty)), _) => config(args, ident, ty, krate),
        // Part of the call for `config`, or of the constructor.
        _ if arg.key.is_of_config() || arg.key.is_of_schedule() => TokenStream::new(),
        (Setting::Group(defaults), "defaults") => {
            let calls = calls(defaults, krate);
            quote!(.#ident(|__child| __child #calls))
        }
        (Setting::Group(restarts), "own_restarts") => {
            let value = |key| restarts.value(key).map(|value| values::value(value, krate));
            let (max, period) = (value("max"), value("period"));
            quote!(.#ident(#max, #period))
        }
        // Not calls of their own: the name and where it runs go to the constructor, the period to `restarts`,
        // `child(…)` to the spec, and the rest to the mailbox and to all paths.
        (
            _,
            "name" | "crate" | "period" | "child" | "capacity" | "mailbox" | "blocking" | "local",
        )
        | (Setting::Group(_) | Setting::Invalid, _) => TokenStream::new(),
        (Setting::Value(Value::Names(names)), _) => {
            names.iter().map(|name| quote!(.#ident(#name))).collect()
        }
        (Setting::Flag, _) => quote!(.#ident()),
        (Setting::Value(Value::Functions(functions)), _) => {
            functions.iter().map(|function| quote!(.#ident(#function))).collect()
        }
        (Setting::Value(max), "max_restarts") => {
            let max = values::value(max, krate);
            let period = args.value("period").map(|period| values::value(period, krate));
            let restarts = Ident::new("restarts", ident.span());
            quote!(.#restarts(#max, #period))
        }
        (Setting::Value(value), "backoff") if args.place == Place::Supervisor => {
            let value = values::value(value, krate);
            quote!(.defaults(|__child| __child.#ident(#value)))
        }
        (Setting::Value(value), _) => {
            let value = values::value(value, krate);
            quote!(.#ident(#value))
        }
    }
}
