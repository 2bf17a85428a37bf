//! The annotated item: which fields are children, and which parameters are special.

mod bodies;
mod methods;
mod node;
mod params;
mod signature;

pub(crate) use bodies::Bodies;
pub(crate) use methods::{Handler, METHODS, child_methods, is_of_child};
pub(crate) use node::{ChildField, Form, Node};
pub(crate) use params::{
    Argument, Inbox, Param, Params, is_inbox, is_run_context, is_service, only_argument,
};
pub(crate) use signature::{inferred, is, is_generic, typed_params, undeclared_lifetime};
