//! `#[supervisor]` and `#[derive(Supervisor)]`: from a struct to its builder.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Item};

use crate::attributes::{derives, take_second};
use crate::errors::Errors;
use crate::keys::Place;
use crate::model::{Form, Node};
use crate::parse::Args;
use crate::{check, expand};

/// Expands `#[supervisor(options)] item`.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = syn::parse2(item.clone()).and_then(|parsed| match parsed {
        Item::Struct(item) => Ok(DeriveInput::from(item)),
        Item::Enum(item) => Ok(item.into()),
        Item::Union(item) => Ok(item.into()),
        other => Err(not_a_struct(&other)),
    });
    let mut item = match parsed {
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

fn not_a_struct(item: &Item) -> Error {
    let instead = match item {
        Item::Fn(_) | Item::Impl(_) => "write `#[worker]` here",
        _ => "put `#[supervisor]` there",
    };
    let keyword = match item {
        Item::Fn(item) => item.sig.fn_token.span(),
        Item::Impl(item) => item.impl_token.span(),
        Item::Mod(item) => item.mod_token.span(),
        Item::Trait(item) => item.trait_token.span(),
        item => item.span(),
    };
    let message = format!("a supervisor is a struct, whose fields are its children; {instead}");
    Error::new(keyword, message)
}
