//! `#[supervisor]` and `#[derive(Supervisor)]`: from a struct to its builder.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, Item, Result};

use crate::attributes::{derives, take_second};
use crate::errors::{Errors, fail};
use crate::keys::Place;
use crate::model::{Form, Node};
use crate::parse::Args;
use crate::{check, expand};

/// Expands `#[supervisor(options)] item`.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = match parse(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    let mut errors = Errors::default();
    if let Some(second) = take_second("supervisor", &mut item.attrs) {
        errors.at(second, "there is a `#[supervisor]` already; put all options into one");
    }
    let args = Args::parse(Place::Supervisor, options.clone(), &mut errors);
    let node = Node::of(Form::Attribute, args, &options, &mut item, &mut errors);
    if let Some(derive) = item.attrs.iter().find(|attribute| derives("Supervisor", attribute)) {
        // The derive macro generates the methods.
        errors.at(derive, SUPERVISOR_TWICE);
        return quote!(#item #errors);
    }
    let methods = finish(&node, errors);
    quote!(#item #methods)
}

/// Expands `#[derive(Supervisor)] #[tree(options)] item`.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    if let Some(attribute) = take_second("supervisor", &mut item.attrs) {
        errors.at(attribute, SUPERVISOR_TWICE);
        return errors.into_token_stream();
    }
    let mut trees = item.attrs.iter().filter(|attribute| attribute.path().is_ident("tree"));
    let tree = trees.next();
    if let Some(second) = trees.next() {
        errors.at(second, "there is a `#[tree(…)]` already; put all options into one");
    }
    let args = match tree {
        Some(tree) => Args::of(Place::Supervisor, tree, &mut errors),
        None => Args::none(Place::Supervisor),
    };
    let node = Node::of(Form::Derive, args, &TokenStream::new(), &mut item, &mut errors);
    finish(&node, errors)
}

const SUPERVISOR_TWICE: &str =
    "`#[supervisor]` and `#[derive(Supervisor)]` do the same; remove one of the two";

fn finish(node: &Node, mut errors: Errors) -> TokenStream {
    check::node(node, &mut errors);
    let methods = expand::node(node, errors.is_empty());
    quote!(#methods #errors)
}

/// Parses a struct, or an item whose fields could be taken for children.
fn parse(item: TokenStream) -> Result<DeriveInput> {
    const HERE: &str =
        "a supervisor is a struct, whose fields are its children; write `#[worker]` here";
    const THERE: &str =
        "a supervisor is a struct, whose fields are its children; put `#[supervisor]` there";
    match syn::parse2(item)? {
        Item::Struct(item) => Ok(item.into()),
        Item::Enum(item) => Ok(item.into()),
        Item::Union(item) => Ok(item.into()),
        Item::Fn(item) => fail(item.sig.fn_token, HERE),
        Item::Impl(item) => fail(item.impl_token, HERE),
        Item::Mod(item) => fail(item.mod_token, THERE),
        Item::Trait(item) => fail(item.trait_token, THERE),
        item => fail(item, THERE),
    }
}
