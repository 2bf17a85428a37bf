//! Rules for an `impl` block under `#[worker]`.

use quote::ToTokens;
use syn::{ImplItem, ImplItemFn, ItemImpl, PatType, Type};

use super::worker::{BORROWS, is_by_reference, no_run, output, qualifiers};
use super::{blocking, options};
use crate::errors::Errors;
use crate::model::{
    Bodies, Handler, METHODS, child_methods, is_context, is_inbox, typed_params,
    undeclared_lifetime,
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
    if let Some(lifetime) = declared.or_else(|| undeclared_lifetime(&block.self_ty)) {
        errors.at(lifetime, BORROWS);
    }
    if blocking::blocks(args) {
        return blocking::block(block, handlers, errors);
    }
    let misspelled = misspelled(block, bodies, errors);
    if !misspelled.contains(&"run") && !child_methods(block).any(|method| method.sig.ident == "run")
    {
        no_run(block, "`async fn run(&mut self, ctx: &Context) -> Exit`", errors);
    }
    for method in child_methods(block) {
        signature(method, errors);
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
        && typed_params(&signature.inputs).all(is_context_reference)
}

/// Refuses a signature that the trait's method can't call.
fn signature(method: &ImplItemFn, errors: &mut Errors) {
    let signature = &method.sig;
    let name = &signature.ident;
    let example = format!("`async fn {name}(&mut self, ctx: &Context) -> Exit`");
    if signature.asyncness.is_none() {
        let message = format!(
            "this must be an `async fn`; write {example}, or `#[worker(blocking)]` for code that blocks"
        );
        errors.at(signature.fn_token, message);
    }
    qualifiers(signature, errors);
    match signature.receiver() {
        None => errors.at(name, format!("this needs `&mut self`; write {example}")),
        Some(receiver) if is_by_reference(receiver) => {}
        Some(receiver) => {
            errors.at(receiver, format!("this must be `&mut self` or `&self`; write {example}"));
        }
    }
    if let Some(param) = signature.generics.params.first() {
        errors.at(param, format!("`{name}` can't have parameters of its own; write {example}"));
    }
    parameters(method, &example, errors);
    output(&format!("`{name}`"), signature, errors);
}

fn parameters(method: &ImplItemFn, example: &str, errors: &mut Errors) {
    let name = &method.sig.ident;
    let (inboxes, others): (Vec<_>, Vec<_>) =
        typed_params(&method.sig.inputs).partition(|param| is_inbox(&param.ty));
    if let Some(inbox) = inboxes.first() {
        let message = format!(
            "`{name}` gets nothing but the context; keep the inbox in a field of the type, and \
             make the child by `child_with_mailbox(\"db\", mailbox, |inbox| …)`"
        );
        errors.at(inbox, message);
    }
    let mut params = others.into_iter();
    if let Some(first) = params.next().filter(|first| !is_context_reference(first)) {
        errors.at(&first.ty, format!("this must be `&Context`; write {example}"));
    }
    if let Some(second) = params.next() {
        let message = format!(
            "`{name}` gets nothing but the context; keep this in a field of the type instead"
        );
        errors.at(second, message);
    }
}

fn is_context_reference(param: &PatType) -> bool {
    match &*param.ty {
        Type::Reference(ty) => ty.mutability.is_none() && is_context(&ty.elem),
        _ => false,
    }
}
