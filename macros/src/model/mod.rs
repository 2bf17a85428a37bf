//! The annotated item: which fields are children, and which parameters are special.

mod bodies;
mod handlers;
mod inbox;
mod methods;
mod node;
mod service;
mod signature;

pub(crate) use bodies::Bodies;
pub(crate) use handlers::{Handler, is_arc};
pub(crate) use inbox::{InboxParam, UnknownMessage, is_inbox, message_type};
pub(crate) use methods::{METHODS, child_methods, child_methods_mut};
pub(crate) use node::{ChildField, FieldKind, Form, Node};
pub(crate) use service::{ServiceParam, is_service, value_type};
pub(crate) use signature::{
    inferred, is_blocking_context, is_context, is_context_or_borrow, is_generic, is_run_context,
    param_name, typed_params, undeclared_lifetime,
};
