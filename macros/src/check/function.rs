//! Rules for an `async fn` under `#[worker]`.

use quote::quote;
use syn::{Expr, ItemFn, Signature, Type};

use super::worker::{BORROWS, output, qualifiers};
use super::{blocking, options};
use crate::errors::Errors;
use crate::model::{
    UnknownMessage, is_context_or_borrow, is_inbox, is_run_context, is_service, message_type,
    typed_params, undeclared_lifetime, value_type,
};
use crate::parse::{Args, Value};

/// The keys of a mailbox.
const MAILBOX_KEYS: [&str; 2] = ["capacity", "mailbox"];

/// Checks a worker function.
pub(crate) fn function(args: &Args, function: &ItemFn, errors: &mut Errors) {
    let signature = &function.sig;
    options::child(args, errors);
    if let Some(receiver) = signature.receiver() {
        errors.at(
            receiver,
            "a worker function can't take `self`, because each incarnation begins from nothing; \
             put `#[worker]` on the `impl` block instead",
        );
    }
    blocking::function(args, function, errors);
    qualifiers(signature, errors);
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        errors.at(lifetime, BORROWS);
    }
    for (index, param) in typed_params(&signature.inputs).enumerate() {
        parameter(index, &param.ty, errors);
    }
    output("a worker", signature, errors);
    schedule(args, signature, errors);
    mailbox(args, signature, errors);
}

/// Checks the keys of a periodic worker, and that it has no mailbox.
fn schedule(args: &Args, signature: &Signature, errors: &mut Errors) {
    let [every, cron, options] =
        ["every", "cron", "schedule"].map(|key| args.get(key).map(|arg| &arg.ident));
    if let (Some(_), Some(cron)) = (every, cron) {
        errors.at(cron, "`cron` sets the same as `every`; remove one of the two");
    }
    let is_periodic = every.or(cron).is_some();
    if let (false, Some(options)) = (is_periodic, options) {
        let message =
            "`schedule` is about the runs of a periodic worker; add `every = \"10s\"`, for example";
        errors.at(options, message);
    }
    let threads = ["blocking", "local"].into_iter().filter_map(|key| args.get(key));
    for thread in threads.filter(|_| is_periodic).map(|arg| &arg.ident) {
        let message = format!(
            "the runs of a periodic worker are async and share the runtime's threads; remove `{thread}`, and call \
             `spawn_blocking` of its context for code that blocks"
        );
        errors.at(thread, message);
    }
    for param in typed_params(&signature.inputs) {
        if is_periodic && is_inbox(&param.ty) {
            errors.at(
                &param.ty,
                "a periodic worker has no mailbox, because it isn't there between two runs; remove this \
                 parameter",
            );
        } else if !is_periodic && is_run_context(&param.ty) {
            errors.at(
                &param.ty,
                "`RunContext` is for the runs of a periodic worker; write `Context`, or add \
                 `every = \"10s\"`, for example",
            );
        }
    }
}

fn parameter(index: usize, ty: &Type, errors: &mut Errors) {
    match ty {
        Type::Reference(reference) if is_context_or_borrow(&reference.elem) => {
            errors.at(reference.and_token, "a worker owns its `Context`; remove the `&`");
        }
        Type::Reference(reference) if is_inbox(&reference.elem) => {}
        Type::Reference(reference) if is_service(&reference.elem) => {
            let (and, mutability) = (&reference.and_token, &reference.mutability);
            let borrow = if mutability.is_some() { "&mut" } else { "&" };
            let message = format!("a worker owns its `Service`; remove the `{borrow}`");
            errors.at(quote!(#and #mutability), message);
        }
        ty if is_service(ty) && value_type(ty).is_none() => {
            errors.at(
                ty,
                "a service needs the type of its value; write `Service<Pool>`, for example",
            );
        }
        ty if index > 0 && is_context_or_borrow(ty) => {
            errors.at(ty, "`Context` must be the first parameter; move it there");
        }
        ty if index > 0 && is_run_context(ty) => {
            errors.at(ty, "`RunContext` must be the first parameter; move it there");
        }
        ty => {
            if let Some(lifetime) = undeclared_lifetime(ty) {
                errors.at(lifetime, BORROWS);
            }
        }
    }
}

fn mailbox(args: &Args, signature: &Signature, errors: &mut Errors) {
    let mut inboxes = typed_params(&signature.inputs).filter(|param| is_inbox(&param.ty));
    let Some(first) = inboxes.next() else { return no_inbox(args, signature, errors) };
    inbox(&first.ty, errors);
    for second in inboxes {
        errors.at(
            second,
            "a worker has one mailbox; put both kinds of messages into one `enum`, and remove this",
        );
    }
    if let Some(Value::Expression(Expr::Closure(closure))) = args.value("mailbox")
        && closure.inputs.len() != 1
    {
        let example = "mailbox = |it| it.max_attempts(3)";
        let message = format!("this takes the mailbox and returns it; write `{example}`");
        errors.at(closure, message);
    }
}

/// Reports all keys of a missing mailbox as one mistake.
fn no_inbox(args: &Args, signature: &Signature, errors: &mut Errors) {
    if let Some(arg) = args.iter().find(|arg| MAILBOX_KEYS.contains(&arg.key.name)) {
        let function = &signature.ident;
        let message = format!(
            "`{function}` has no mailbox; add a parameter `inbox: Inbox<M>`, where `M` is the type \
             of the messages"
        );
        errors.at(&arg.ident, message);
    }
}

fn inbox(ty: &Type, errors: &mut Errors) {
    if let Type::Reference(reference) = ty {
        let (and, mutability) = (&reference.and_token, &reference.mutability);
        let borrow = if mutability.is_some() { "&mut" } else { "&" };
        let message = format!("a worker owns its `Inbox`; remove the `{borrow}`");
        errors.at(quote!(#and #mutability), message);
    }
    match message_type(ty) {
        Ok(_) => {}
        Err(UnknownMessage::Missing) => {
            errors.at(
                ty,
                "an inbox needs the type of its messages; write `Inbox<String>`, for example",
            );
        }
        Err(UnknownMessage::Anonymous(anonymous)) => errors.at(
            anonymous,
            "the type of the messages needs a name, because the address has it, too; write a type \
             parameter, as in `fn relay<M: Send>(inbox: Inbox<M>)`",
        ),
    }
}
