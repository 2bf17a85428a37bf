//! Rules for the methods with `#[on]`.

use syn::ReceiverKind;

use super::signature::{callable, not_generic};
use crate::errors::Errors;
use crate::model::{Handler, METHODS, is, only_argument};
use crate::parse::{Value, text};

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
    callable("a handler", signature, errors);
    not_generic("a handler", signature, &example, errors);
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
        Some(event) if is(event, "Arc") && only_argument(event).is_ok() => {}
        Some(event) => errors.at(
            event,
            "all handlers of an event share it; write `Arc` around its type, as in `Arc<Saved>`",
        ),
        None => errors.at(name, format!("a handler takes an event; write {example}")),
    }
    if let Some(further) = handler.params().nth(usize::from(handler.takes_context()) + 1) {
        let message = "a handler gets nothing but the context and the event; keep this in a field of the type";
        errors.at(further, message);
    }
    if let Some(Value::Expression(channel)) = handler.options.value("channel")
        && text(channel).is_some_and(|channel| channel.value() == "__dead_letter__")
    {
        errors.at(
            channel,
            "only the bus publishes here; call `ctx.bus().on_dead_letter(…)` to receive dead letters",
        );
    }
}
