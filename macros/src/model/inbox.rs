//! The parameter of a worker function that is an `Inbox<M>`, recognised by its name.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::visit::Visit;
use syn::{GenericArgument, PatType, PathArguments, Type, TypeImplTrait, TypeInfer};

use super::signature::{last_segment, param_name, undeclared_lifetime, without_reference};

/// Returns whether a type is named `Inbox`, or a reference to one.
pub(crate) fn is_inbox(ty: &Type) -> bool {
    last_segment(without_reference(ty)).is_some_and(|last| last.ident == "Inbox")
}

/// The inbox that a function takes.
pub(crate) struct InboxParam {
    pub(crate) name: Ident,
    /// Its index among the parameters besides the context.
    pub(crate) index: usize,
    /// The type of the messages. `None` if it is missing or invalid, which is reported.
    pub(crate) message: Option<Type>,
}

impl InboxParam {
    /// Returns the first inbox among these parameters.
    pub(crate) fn find<'a>(params: impl IntoIterator<Item = &'a PatType>) -> Option<Self> {
        let mut params = params.into_iter().enumerate();
        let (index, param) = params.find(|(_, param)| is_inbox(&param.ty))?;
        let message = message_type(&param.ty).ok();
        let message = message.filter(|message| undeclared_lifetime(message).is_none());
        Some(Self { name: param_name(param, "__inbox"), index, message })
    }
}

/// Why an inbox has no usable type of messages.
pub(crate) enum UnknownMessage {
    Missing,
    /// It has an `impl Trait`, which can't be repeated in the type of the address.
    Anonymous(TokenStream),
}

/// Returns the `M` of an `Inbox<M>`.
pub(crate) fn message_type(ty: &Type) -> Result<Type, UnknownMessage> {
    let inbox = last_segment(without_reference(ty)).map(|inbox| &inbox.arguments);
    if let Some(PathArguments::AngleBracketed(arguments)) = inbox
        && arguments.args.len() == 1
        && let GenericArgument::Type(message) = &arguments.args[0]
    {
        return check_repeatable(message).map(|()| message.clone());
    }
    Err(UnknownMessage::Missing)
}

/// Checks that a type can be written a second time.
fn check_repeatable(message: &Type) -> Result<(), UnknownMessage> {
    struct Repeatable(Result<(), UnknownMessage>);

    impl<'ast> Visit<'ast> for Repeatable {
        fn visit_type_impl_trait(&mut self, anonymous: &'ast TypeImplTrait) {
            self.0 = Err(UnknownMessage::Anonymous(quote!(#anonymous)));
        }

        fn visit_type_infer(&mut self, _: &'ast TypeInfer) {
            self.0 = Err(UnknownMessage::Missing);
        }
    }

    let mut repeatable = Repeatable(Ok(()));
    repeatable.visit_type(message);
    repeatable.0
}
