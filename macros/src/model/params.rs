//! The parameters of a worker function, recognised by the names of their types.

use proc_macro2::Ident;
use syn::{GenericArgument, PatType, PathArguments, Signature, Type};

use super::signature::{is, is_context, without_reference};
use super::signature::{last_segment, param_name, typed_params, undeclared_lifetime};

/// What a worker function takes.
pub(crate) struct Params {
    /// The name of the context, which comes first.
    pub(crate) context: Option<Ident>,
    /// Whether that is the context of a run.
    pub(crate) of_run: bool,
    /// The other parameters, in order. Those with a mistake that has no type are left out.
    pub(crate) others: Vec<Param>,
}

/// A parameter besides the context.
pub(crate) enum Param {
    Argument(Argument),
    Inbox(Inbox),
    /// A service, with the type of its value.
    Service(Type),
}

/// A parameter of the constructor, which the function gets a clone of.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

pub(crate) struct Inbox {
    pub(crate) name: Ident,
    /// The type of the messages. `None` if it is missing or invalid, which is reported.
    pub(crate) message: Option<Type>,
}

impl Params {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut params = typed_params(&signature.inputs).peekable();
        let first = params.next_if(|first| is_context(&first.ty) || is_run_context(&first.ty));
        let of_run = first.is_some_and(|first| is_run_context(&first.ty));
        let context = first.map(|first| param_name(first, "__ctx"));
        let mut found = Self { context, of_run, others: Vec::new() };
        // A context in another place is reported.
        for param in params.filter(|param| !is_context(&param.ty)) {
            let param = found.param(param);
            found.others.extend(param);
        }
        found
    }

    fn param(&self, param: &PatType) -> Option<Param> {
        if is_service(&param.ty) {
            return only_argument(&param.ty).cloned().map(Param::Service);
        }
        if is_inbox(&param.ty) {
            let message = only_argument(&param.ty);
            let message = message.filter(|message| undeclared_lifetime(message).is_none());
            let inbox = Inbox { name: param_name(param, "__inbox"), message: message.cloned() };
            return self.inbox().is_none().then_some(Param::Inbox(inbox));
        }
        let name = param_name(param, &format!("argument_{}", self.arguments().count() + 1));
        Some(Param::Argument(Argument { name, ty: (*param.ty).clone() }))
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.others.iter().filter_map(|param| match param {
            Param::Argument(argument) => Some(argument),
            _ => None,
        })
    }

    pub(crate) fn inbox(&self) -> Option<&Inbox> {
        self.others.iter().find_map(|param| match param {
            Param::Inbox(inbox) => Some(inbox),
            _ => None,
        })
    }

    pub(crate) fn has_services(&self) -> bool {
        self.others.iter().any(|param| matches!(param, Param::Service(_)))
    }
}

/// Returns whether a type is named `RunContext`.
pub(crate) fn is_run_context(ty: &Type) -> bool {
    is(ty, "RunContext")
}

/// Returns whether a type is named `Inbox`, or a reference to one.
pub(crate) fn is_inbox(ty: &Type) -> bool {
    is(without_reference(ty), "Inbox")
}

/// Returns whether a type is named `Service`, or a reference to one.
pub(crate) fn is_service(ty: &Type) -> bool {
    is(without_reference(ty), "Service")
}

/// Returns the `M` of an `Inbox<M>`, or the `T` of a `Service<T>`. It has to be a type that can be written twice.
pub(crate) fn only_argument(ty: &Type) -> Option<&Type> {
    match &last_segment(without_reference(ty))?.arguments {
        PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => {
            match &arguments.args[0] {
                GenericArgument::Type(Type::ImplTrait(_) | Type::Infer(_)) => None,
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            }
        }
        _ => None,
    }
}
