//! The annotated item: which fields are children, and which parameters are special.

mod bodies;
mod methods;
mod node;
mod signature;

pub(crate) use bodies::Bodies;
pub(crate) use methods::{Handler, METHODS, child_methods, is_of_child};
pub(crate) use node::{ChildField, Form, Node};
pub(crate) use signature::{
    Argument, Inbox, Param, Params, inferred, is, is_generic, is_inbox, is_run_context, is_service,
    only_argument, typed_params, undeclared_lifetime,
};
