//! Rules for what a supervisor calls, whether it is a function or a method.

use syn::{PatType, Receiver, ReceiverKind, ReturnType, Signature, Type};

use crate::errors::Errors;
use crate::model::{is, is_inbox, typed_params};

pub(super) const BORROWS: &str = "a worker can't borrow, because it outlives the function that \
                                  starts it; let it own the data, or share it in an `Arc`";

/// Refuses `-> !`.
pub(super) fn output(subject: &str, signature: &Signature, errors: &mut Errors) {
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::Never(never) = &**ty
    {
        errors.at(never, format!("{subject} returns nothing or `Exit`; remove `-> !`"));
    }
}

/// Returns whether a method takes `&self` or `&mut self`.
pub(super) fn is_by_reference(receiver: &Receiver) -> bool {
    matches!(receiver.kind, ReceiverKind::Reference(..))
}

/// Returns whether a parameter is a shared reference to a type of this name.
pub(super) fn is_reference(param: &PatType, name: &str) -> bool {
    match &*param.ty {
        Type::Reference(ty) => ty.mutability.is_none() && is(&ty.elem, name),
        _ => false,
    }
}

/// Returns how a method of the trait `Child`, or the `run` of a worker that blocks, is written.
pub(super) fn example(name: &str, blocks: bool) -> String {
    match blocks {
        true => format!("`fn {name}(&mut self, ctx: &BlockingContext) -> Exit`"),
        false => format!("`async fn {name}(&mut self, ctx: &Context) -> Exit`"),
    }
}

/// Refuses a method of the trait `Child`, or a `run` that blocks, that a supervisor couldn't call.
pub(super) fn method(signature: &Signature, blocks: bool, errors: &mut Errors) {
    let name = &signature.ident;
    let example = example(&name.to_string(), blocks);
    match (&signature.asyncness, blocks) {
        (Some(asyncness), true) => {
            errors.at(asyncness, format!("this must block; write {example}"));
        }
        (None, false) => {
            let message = format!(
                "this must be an `async fn`; write {example}, or `#[worker(blocking)]` for code that blocks"
            );
            errors.at(signature.fn_token, message);
        }
        _ => {}
    }
    match signature.receiver() {
        None => errors.at(name, format!("this needs `&mut self`; write {example}")),
        Some(receiver) if is_by_reference(receiver) => {}
        Some(receiver) => {
            let or = if blocks { "" } else { " or `&self`" };
            errors.at(receiver, format!("this must be `&mut self`{or}; write {example}"));
        }
    }
    let is_misplaced = |param: &&PatType| !blocks && is_inbox(&param.ty);
    let (inboxes, others): (Vec<_>, Vec<_>) =
        typed_params(&signature.inputs).partition(is_misplaced);
    errors.each(
        inboxes.first(),
        format!(
            "`{name}` gets nothing but the context; keep the inbox in a field of the type, and \
             make the child by `child_with_mailbox(\"db\", mailbox, |inbox| …)`"
        ),
    );
    let context = if blocks { "BlockingContext" } else { "Context" };
    let first = others.first().filter(|first| !is_reference(first, context));
    errors
        .each(first.map(|first| &first.ty), format!("this must be `&{context}`; write {example}"));
    errors.each(
        others.get(1),
        format!("`{name}` gets nothing but the context; keep this in a field of the type instead"),
    );
    output(&format!("`{name}`"), signature, errors);
}
