//! `#[supervisor]` and `#[derive(Supervisor)]`: from a struct to its builder.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{DeriveInput, Item};

use crate::attributes::{derives, take_second};
use crate::errors::Errors;
use crate::keys::Place;
use crate::model::{Form, Node};
use crate::parse::Args;
use crate::{check, expand};

/// Expands `#[supervisor(options)] item`.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut item: DeriveInput = match syn::parse2(item.clone()) {
        Ok(Item::Struct(item)) => item.into(),
        Ok(Item::Enum(item)) => item.into(),
        Ok(Item::Union(item)) => item.into(),
        Ok(other) => {
            errors.at_span(keyword(&other), not_a_struct(&other));
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    if let Some(second) = take_second("supervisor", &mut item.attrs) {
        errors.at(second, "there is a `#[supervisor]` already; put all options into one");
    }
    let args = Args::parse(Place::Supervisor, options.clone(), &mut errors);
    let node = Node::of(Form::Attribute, args, &options, &mut item, &mut errors);
    if let Some(derive) = item.attrs.iter().find(|attribute| derives("Supervisor", attribute)) {
        // The derive macro generates the methods.
        errors.at(derive, SUPERVISOR_TWICE);
        let errors = errors.into_tokens();
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
        return errors.into_tokens();
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
    let options = quote!(#tree);
    let node = Node::of(Form::Derive, args, &options, &mut item, &mut errors);
    finish(&node, errors)
}

const SUPERVISOR_TWICE: &str =
    "`#[supervisor]` and `#[derive(Supervisor)]` do the same; remove one of the two";

fn finish(node: &Node, mut errors: Errors) -> TokenStream {
    check::node(node, &mut errors);
    let methods = expand::node(node, errors.is_empty());
    let errors = errors.into_tokens();
    quote!(#methods #errors)
}

/// Returns the span of an item's keyword.
fn keyword(item: &Item) -> proc_macro2::Span {
    match item {
        Item::Fn(item) => item.sig.fn_token.span(),
        Item::Impl(item) => item.impl_token.span(),
        Item::Mod(item) => item.mod_token.span(),
        Item::Trait(item) => item.trait_token.span(),
        item => item.span(),
    }
}

fn not_a_struct(item: &Item) -> &'static str {
    match item {
        Item::Fn(_) | Item::Impl(_) => {
            "a supervisor is a struct, whose fields are its children; write `#[worker]` here"
        }
        _ => "a supervisor is a struct, whose fields are its children; put `#[supervisor]` there",
    }
}
