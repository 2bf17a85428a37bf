//! Rules for functions that a supervisor calls, whether they are free or methods.

use syn::{ItemImpl, Receiver, ReceiverKind, ReturnType, Safety, Signature, Type};

use crate::errors::Errors;

pub(super) const BORROWS: &str = "a worker can't borrow, because it outlives the function that \
                                  starts it; let it own the data, or share it in an `Arc`";

/// Refuses qualifiers that a supervisor can't call.
pub(super) fn qualifiers(signature: &Signature, errors: &mut Errors) {
    if let Some(constness) = &signature.constness {
        errors.at(constness, "a worker can't be `const`, since it is `async`; remove this");
    }
    if !matches!(signature.safety, Safety::Default) {
        errors.at(
            &signature.safety,
            "a supervisor calls a worker without `unsafe`; remove this, and write `unsafe` blocks \
             in the function",
        );
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a worker is called from Rust; remove this");
    }
}

/// Refuses `-> !`.
pub(super) fn output(subject: &str, signature: &Signature, errors: &mut Errors) {
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::Never(never) = &**ty
    {
        errors.at(never, format!("{subject} returns nothing or `Exit`; remove `-> !`"));
    }
}

/// Reports that there is no `run`.
pub(super) fn no_run(block: &ItemImpl, example: &str, errors: &mut Errors) {
    errors.at(&block.self_ty, format!("a worker needs a method `run`; add {example}"));
}

/// Returns whether a method takes `&self` or `&mut self`.
pub(super) fn is_by_reference(receiver: &Receiver) -> bool {
    matches!(receiver.kind, ReceiverKind::Reference(..))
}
