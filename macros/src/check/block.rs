//! Rules for an `impl` block under `#[worker]`.

use quote::ToTokens;
use syn::{ImplItem, ImplItemFn, ItemImpl};

use super::options;
use super::signature::{BORROWS, example, is_by_reference, is_reference, method};
use crate::errors::Errors;
use crate::model::{Bodies, Handler, METHODS, child_methods, typed_params, undeclared_lifetime};
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
    if let Some(lifetime) = declared.or_else(|| undeclared_lifetime(&block.self_ty)) {
        errors.at(lifetime, BORROWS);
    }
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
    has_run |= !blocks && misspelled(block, bodies, errors).contains(&"run");
    if !has_run {
        let example = example("run", blocks);
        errors.at(&block.self_ty, format!("a worker needs a method `run`; add {example}"));
    }
    if let (true, Some(handler)) = (blocks, handlers.first()) {
        errors.at(
            &handler.method.sig.ident,
            "a blocking worker handles no events; put the handler into an async worker",
        );
    }
}

/// Reports methods that are nearly named like a missing one of the trait, and returns those.
///
/// A method that the block itself calls is none of them, nor is one that the trait couldn't call.
fn misspelled(block: &ItemImpl, bodies: &Bodies, errors: &mut Errors) -> Vec<&'static str> {
    let mut reported = Vec::new();
    for item in &block.items {
        let ImplItem::Fn(method) = item else { continue };
        let name = &method.sig.ident;
        if !could_be_of_child(method) || bodies.mention(name) {
            continue;
        }
        let is_meant = |meant: &&&'static str| {
            let is_missing = child_methods(block).all(|method| method.sig.ident != **meant);
            is_missing && is_misspelled(&name.to_string(), meant)
        };
        if let Some(meant) = METHODS.iter().find(is_meant) {
            let message = format!(
                "`Child` has no method `{name}`; did you mean `{meant}`? a method of your own goes \
                 into an `impl` block without `#[worker]`"
            );
            errors.at(name, message);
            reported.push(*meant);
        }
    }
    reported
}

fn is_misspelled(name: &str, meant: &str) -> bool {
    let mistakes = if meant.len() > 3 { 2 } else { 1 };
    // `reactivate` is a word of its own.
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
