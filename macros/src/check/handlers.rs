//! Rules for the methods with `#[on]`.

use syn::{Expr, ExprLit, FnArg, Lit, Meta, ReceiverKind};

use super::worker::{output, qualifiers};
use crate::errors::Errors;
use crate::model::{Handler, METHODS, is_arc};
use crate::suggestion::instead;

/// The options of `#[on]`.
const OPTIONS: [&str; 3] = ["capacity", "channel", "errors_fail_child"];

/// Checks a method that handles events.
pub(crate) fn handler(handler: &Handler, errors: &mut Errors) {
    let signature = &handler.method.sig;
    let name = &signature.ident;
    if METHODS.iter().any(|method| name == method) {
        let message = format!("`{name}` is a method of `Child`; give the handler another name");
        errors.at(name, message);
    }
    let example = format!("`async fn {name}(&self, event: Arc<Saved>)`, for example");
    if signature.asyncness.is_none() {
        errors.at(signature.fn_token, format!("a handler must be an `async fn`; write {example}"));
    }
    qualifiers(signature, errors);
    if let Some(param) = signature.generics.params.first() {
        errors.at(param, format!("a handler can't have parameters of its own; write {example}"));
    }
    let borrows = |receiver: &FnArg| match receiver {
        FnArg::Receiver(receiver) => match &receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => mutability.is_none(),
            _ => false,
        },
        FnArg::Typed(_) => false,
    };
    match handler.receiver() {
        Some(receiver) if borrows(receiver) => {}
        Some(receiver) => errors.at(
            receiver,
            "a handler runs beside `run`, on a clone of the value, so it takes `&self`; share what it changes \
             in an `Arc`",
        ),
        None => errors.at(name, format!("a handler takes `&self`; write {example}")),
    }
    let context = usize::from(handler.takes_context());
    match handler.event() {
        Some(event) if !is_arc(event) => errors.at(
            event,
            "all handlers of an event share it; write `Arc` around its type, as in `Arc<Saved>`",
        ),
        Some(_) => {}
        None => errors.at(name, format!("a handler takes an event; write {example}")),
    }
    if let Some(further) = handler.params().nth(context + 1) {
        let message = "a handler gets nothing but the context and the event; keep this in a field of the type";
        errors.at(further, message);
    }
    output("a handler", signature, errors);
    for option in &handler.options {
        check_option(option, errors);
    }
}

fn check_option(option: &Meta, errors: &mut Errors) {
    let path = option.path();
    let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
    match (name.as_str(), option) {
        ("errors_fail_child", Meta::Path(_)) | ("capacity", Meta::NameValue(_)) => {}
        ("channel", Meta::NameValue(value)) => {
            let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &value.value else {
                return errors.at(&value.value, "write the name of a channel in quotes");
            };
            if text.value() == "__dead_letter__" {
                errors.at(
                    text,
                    "only the bus publishes here; call `ctx.bus().on_dead_letter(…)` to receive dead letters",
                );
            }
        }
        ("errors_fail_child", _) => errors.at(option, "write `errors_fail_child` without a value"),
        ("capacity", _) => errors.at(option, "write a number of events, as in `capacity = 128`"),
        ("channel", _) => errors.at(option, "write a name, as in `channel = \"orders\"`"),
        _ => errors
            .at(path, format!("`on` has no option `{name}`; {}", instead(&name, &OPTIONS, None))),
    }
}
