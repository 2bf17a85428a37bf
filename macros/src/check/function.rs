//! Rules for a function under `#[worker]`.

use quote::quote;
use syn::{Expr, ItemFn, Signature, Type};

use super::options;
use super::signature::{BORROWS, output};
use crate::errors::Errors;
use crate::model::{
    is, is_inbox, is_run_context, is_service, only_argument, typed_params, undeclared_lifetime,
};
use crate::parse::{Args, Value};

/// Checks a worker function.
pub(crate) fn function(args: &Args, function: &ItemFn, errors: &mut Errors) {
    let signature = &function.sig;
    options::child(args, errors);
    errors.each(
        signature.receiver(),
        "a worker function can't take `self`, because each incarnation begins from nothing; \
         put `#[worker]` on the `impl` block instead",
    );
    thread(args, signature, errors);
    output("a worker", signature, errors);
    errors.each(signature.generics.lifetimes().next(), BORROWS);
    for (index, param) in typed_params(&signature.inputs).enumerate() {
        parameter(index, &param.ty, errors);
    }
    schedule(args, signature, errors);
    mailbox(args, signature, errors);
}

/// Checks where a worker function runs: `blocking`, `local`, and what goes with that.
fn thread(args: &Args, signature: &Signature, errors: &mut Errors) {
    let [blocking, local] = ["blocking", "local"].map(|key| args.ident(key));
    if let (Some(_), Some(local)) = (blocking, local) {
        return errors.at(local, "a worker either blocks or is async; remove one of the two");
    }
    match (&signature.asyncness, blocking) {
        (Some(asyncness), Some(_)) => errors.at(
            asyncness,
            "a blocking worker is no `async fn`; remove `async`, or write `#[worker]` without \
             `blocking`",
        ),
        (None, None) => errors.at(
            signature.fn_token,
            "a worker must be an `async fn`, so that it can be cancelled; write `async fn`, or \
             `#[worker(blocking)]` for code that blocks",
        ),
        _ => {}
    }
    let types = || typed_params(&signature.inputs).map(|param| &*param.ty);
    errors.each(
        types().filter(|ty| blocking.is_some() && is(ty, "Context")),
        "a blocking worker has a context with blocking calls; write `BlockingContext`",
    );
    errors.each(
        types().filter(|ty| blocking.is_none() && is(ty, "BlockingContext")),
        "an async worker has a `Context`; write that, or `#[worker(blocking)]`",
    );
    if let Some(key) = blocking.or(local) {
        let message = format!(
            "a worker with `{key}` gets no inbox and no service; take an `Address` or the value as an \
             argument, or find the service with `Context::service`"
        );
        errors.each(types().filter(|ty| is_inbox(ty) || is_service(ty)), message);
    }
}

/// Checks the keys of a periodic worker, and that it has no mailbox.
fn schedule(args: &Args, signature: &Signature, errors: &mut Errors) {
    let [every, cron, options] = ["every", "cron", "schedule"].map(|key| args.ident(key));
    errors.each(every.and(cron), "`cron` sets the same as `every`; remove one of the two");
    let is_periodic = every.or(cron).is_some();
    errors.each(
        options.filter(|_| !is_periodic),
        "`schedule` is about the runs of a periodic worker; add `every = \"10s\"`, for example",
    );
    let threads = ["blocking", "local"].into_iter().filter_map(|key| args.ident(key));
    for thread in threads.filter(|_| is_periodic) {
        let message = format!(
            "the runs of a periodic worker are async and share the runtime's threads; remove `{thread}`, and call \
             `spawn_blocking` of its context for code that blocks"
        );
        errors.at(thread, message);
    }
    let types = || typed_params(&signature.inputs).map(|param| &*param.ty);
    errors.each(
        types().filter(|ty| is_periodic && is_inbox(ty)),
        "a periodic worker has no mailbox, because it isn't there between two runs; remove this \
         parameter",
    );
    errors.each(
        types().filter(|ty| !is_periodic && is_run_context(ty)),
        "`RunContext` is for the runs of a periodic worker; write `Context`, or add \
         `every = \"10s\"`, for example",
    );
}

fn parameter(index: usize, ty: &Type, errors: &mut Errors) {
    let misplaced = ["Context", "BlockingContext", "RunContext"].into_iter().find(|it| is(ty, it));
    if let Type::Reference(reference) = ty
        && let Some(owned) = ["Context", "BlockingContext", "Inbox", "Service"]
            .iter()
            .find(|name| is(&reference.elem, name))
    {
        let (and, mutability) = (&reference.and_token, &reference.mutability);
        let borrow = if mutability.is_some() { "&mut" } else { "&" };
        let message = format!("a worker owns its `{owned}`; remove the `{borrow}`");
        errors.at(quote!(#and #mutability), message);
    } else if is_service(ty) && only_argument(ty).is_none() {
        let message = "a service needs the type of its value; write `Service<Pool>`, for example";
        errors.at(ty, message);
    } else if let Some(context) = misplaced.filter(|_| index > 0) {
        errors.at(ty, format!("`{context}` must be the first parameter; move it there"));
    } else if let Some(lifetime) = undeclared_lifetime(ty) {
        errors.at(lifetime, BORROWS);
    }
}

fn mailbox(args: &Args, signature: &Signature, errors: &mut Errors) {
    let mut inboxes = typed_params(&signature.inputs).filter(|param| is_inbox(&param.ty));
    let Some(first) = inboxes.next() else {
        // All keys of a missing mailbox are one mistake.
        let mut keys = args.iter().filter(|arg| matches!(arg.key.name, "capacity" | "mailbox"));
        let message = format!(
            "`{}` has no mailbox; add a parameter `inbox: Inbox<M>`, where `M` is the type of the messages",
            signature.ident
        );
        return errors.each(keys.next().map(|key| &key.ident), message);
    };
    errors.each(
        Some(&first.ty).filter(|ty| only_argument(ty).is_none()),
        "an inbox needs the type of its messages; write `Inbox<String>`, for example",
    );
    errors.each(
        inboxes,
        "a worker has one mailbox; put both kinds of messages into one `enum`, and remove this",
    );
    if let Some(Value::Expression(Expr::Closure(closure))) = args.value("mailbox")
        && closure.inputs.len() != 1
    {
        let example = "mailbox = |it| it.max_attempts(3)";
        let message = format!("this takes the mailbox and returns it; write `{example}`");
        errors.at(closure, message);
    }
}
