//! Rules for an `impl` block under `#[worker]`.

use quote::ToTokens;
use syn::{ImplItem, ImplItemFn, ItemImpl, ReceiverKind};

use super::options;
use super::signature::{BORROWS, example, is_by_reference, is_reference, method, output};
use crate::errors::Errors;
use crate::model::{
    Bodies, Handler, METHODS, child_methods, is, only_argument, typed_params, undeclared_lifetime,
};
use crate::parse::Args;

/// Checks an `impl` block.
pub(crate) fn block(
    args: &Args,
    block: &ItemImpl,
    handlers: &[Handler],
    bodies: &Bodies,
    errors: &mut Errors,
) {
    options::child(args, errors);
    let declared = block.generics.lifetimes().next().map(ToTokens::to_token_stream);
    errors.each(declared.or_else(|| undeclared_lifetime(&block.self_ty)), BORROWS);
    let blocks = args.get("blocking").is_some();
    let mut has_run = false;
    for found in child_methods(block) {
        let name = &found.sig.ident;
        has_run |= name == "run";
        if blocks && name != "run" {
            let message = format!(
                "a blocking worker has no `{name}`; do that in `run`, and set `readiness = \"signal\"` if it has \
                 to be ready first"
            );
            errors.at(name, message);
        } else {
            method(&found.sig, blocks, errors);
        }
    }
    if !blocks {
        has_run |= misspelled(block, bodies, errors);
    }
    if !has_run {
        let example = example("run", blocks);
        errors.at(&block.self_ty, format!("a worker needs a method `run`; add {example}"));
    }
    errors.each(
        handlers.first().filter(|_| blocks).map(|handler| &handler.method.sig.ident),
        "a blocking worker handles no events; put the handler into an async worker",
    );
    handlers.iter().for_each(|it| handler(it, errors));
}

/// Reports methods that are nearly named like a missing one of the trait. Returns whether `run` is one of these.
///
/// A method that the block itself calls isn't meant, nor is one that the trait couldn't call.
fn misspelled(block: &ItemImpl, bodies: &Bodies, errors: &mut Errors) -> bool {
    let mut is_run = false;
    for item in &block.items {
        let ImplItem::Fn(method) = item else { continue };
        let name = &method.sig.ident;
        let is_meant = |meant: &&&str| {
            is_misspelled(&name.to_string(), meant)
                && child_methods(block).all(|found| found.sig.ident != **meant)
        };
        let meant = METHODS.iter().find(is_meant);
        let meant = meant.filter(|_| could_be_of_child(method) && !bodies.mention(name));
        if let Some(meant) = meant {
            let message = format!(
                "`Child` has no method `{name}`; did you mean `{meant}`? a method of your own goes \
                 into an `impl` block without `#[worker]`"
            );
            errors.at(name, message);
            is_run |= *meant == "run";
        }
    }
    is_run
}

fn is_misspelled(name: &str, meant: &str) -> bool {
    let mistakes = if meant.len() > 3 { 2 } else { 1 };
    // `reactivate` is a different word.
    !METHODS.contains(&name)
        && name != "reactivate"
        && strsim::osa_distance(name, meant) <= mistakes
}

/// Returns whether a method has a signature of the trait's methods, apart from its name.
fn could_be_of_child(method: &ImplItemFn) -> bool {
    let signature = &method.sig;
    signature.asyncness.is_some()
        && signature.receiver().is_some_and(is_by_reference)
        && typed_params(&signature.inputs).all(|param| is_reference(param, "Context"))
}

/// Checks a method that handles events.
fn handler(handler: &Handler, errors: &mut Errors) {
    let signature = &handler.method.sig;
    let name = &signature.ident;
    errors.each(
        METHODS.iter().any(|method| name == method).then_some(name),
        format!("`{name}` is a method of `Child`; give the handler another name"),
    );
    let example = format!("`async fn {name}(&self, event: Arc<Saved>)`, for example");
    if signature.asyncness.is_none() {
        errors.at(signature.fn_token, format!("a handler must be an `async fn`; write {example}"));
    }
    output("a handler", signature, errors);
    match signature.receiver() {
        Some(receiver) if matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) => {}
        Some(receiver) => errors.at(
            receiver,
            "a handler runs beside `run`, on a clone of the value, so it takes `&self`; share what it changes \
             in an `Arc`",
        ),
        None => errors.at(name, format!("a handler takes `&self`; write {example}")),
    }
    match handler.event() {
        Some(event) if is(event, "Arc") && only_argument(event).is_some() => {}
        Some(event) => errors.at(
            event,
            "all handlers of an event share it; write `Arc` around its type, as in `Arc<Saved>`",
        ),
        None => errors.at(name, format!("a handler takes an event; write {example}")),
    }
    errors.each(
        handler.params().nth(usize::from(handler.takes_context()) + 1),
        "a handler gets nothing but the context and the event; keep this in a field of the type",
    );
}
