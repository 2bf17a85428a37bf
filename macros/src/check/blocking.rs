//! Rules for workers that run on a thread of their own: `blocking` and `local`.

use syn::{ItemFn, ItemImpl, PatType, Type};

use super::worker::{is_by_reference, no_run, output, qualifiers};
use crate::errors::Errors;
use crate::model::{
    Handler, child_methods, is_blocking_context, is_context, is_inbox, is_service, typed_params,
};
use crate::parse::Args;

const EXAMPLE: &str = "`fn run(&mut self, ctx: &BlockingContext) -> Exit`";

/// Returns whether the worker blocks a thread of its own.
pub(super) fn blocks(args: &Args) -> bool {
    args.get("blocking").is_some()
}

/// Checks where a worker function runs, and what goes with that.
pub(super) fn function(args: &Args, function: &ItemFn, errors: &mut Errors) {
    let signature = &function.sig;
    let (blocking, local) = (args.get("blocking"), args.get("local"));
    if let (Some(_), Some(local)) = (blocking, local) {
        errors.at(&local.ident, "a worker either blocks or is async; remove one of the two");
        return;
    }
    match (&signature.asyncness, blocks(args)) {
        (Some(asyncness), true) => errors.at(
            asyncness,
            "a blocking worker is no `async fn`; remove `async`, or write `#[worker]` without \
             `blocking`",
        ),
        (None, false) => errors.at(
            signature.fn_token,
            "a worker must be an `async fn`, so that it can be cancelled; write `async fn`, or \
             `#[worker(blocking)]` for code that blocks",
        ),
        _ => {}
    }
    for param in typed_params(&signature.inputs) {
        context(args, &param.ty, errors);
        let key = blocking.or(local).map(|arg| &arg.ident);
        if let Some(key) = key.filter(|_| is_inbox(&param.ty) || is_service(&param.ty)) {
            let message = format!(
                "a worker with `{key}` gets no inbox and no service; take an `Address` or the value as an \
                 argument, or find the service with `Context::service`"
            );
            errors.at(&param.ty, message);
        }
    }
}

fn context(args: &Args, ty: &Type, errors: &mut Errors) {
    if blocks(args) && is_context(ty) {
        errors
            .at(ty, "a blocking worker has a context with blocking calls; write `BlockingContext`");
    } else if !blocks(args) && is_blocking_context(ty) {
        errors.at(ty, "an async worker has a `Context`; write that, or `#[worker(blocking)]`");
    }
}

/// Checks an `impl` block whose `run` blocks.
pub(super) fn block(block: &ItemImpl, handlers: &[Handler], errors: &mut Errors) {
    let mut has_run = false;
    for method in child_methods(block) {
        let (signature, name) = (&method.sig, &method.sig.ident);
        if name != "run" {
            let message = format!(
                "a blocking worker has no `{name}`; do that in `run`, and set `readiness = \"signal\"` if it has \
                 to be ready first"
            );
            errors.at(name, message);
            continue;
        }
        has_run = true;
        if let Some(asyncness) = &signature.asyncness {
            errors.at(asyncness, format!("this must block; write {EXAMPLE}"));
        }
        qualifiers(signature, errors);
        match signature.receiver() {
            Some(receiver) if is_by_reference(receiver) => {}
            Some(receiver) => {
                errors.at(receiver, format!("this must be `&mut self`; write {EXAMPLE}"))
            }
            None => errors.at(name, format!("this needs `&mut self`; write {EXAMPLE}")),
        }
        if let Some(param) = signature.generics.params.first() {
            errors.at(param, format!("`run` can't have parameters of its own; write {EXAMPLE}"));
        }
        let mut params = typed_params(&signature.inputs);
        if let Some(first) = params.next().filter(|first| !is_blocking_context_reference(first)) {
            errors.at(&first.ty, format!("this must be `&BlockingContext`; write {EXAMPLE}"));
        }
        if let Some(second) = params.next() {
            errors.at(
                second,
                "`run` gets nothing but the context; keep this in a field of the type instead",
            );
        }
        output("`run`", signature, errors);
    }
    if !has_run {
        no_run(block, EXAMPLE, errors);
    }
    if let Some(handler) = handlers.first() {
        errors.at(
            &handler.method.sig.ident,
            "a blocking worker handles no events; put the handler into an async worker",
        );
    }
}

fn is_blocking_context_reference(param: &PatType) -> bool {
    match &*param.ty {
        Type::Reference(ty) => ty.mutability.is_none() && is_blocking_context(&ty.elem),
        _ => false,
    }
}
