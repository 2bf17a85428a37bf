//! `#[supervisor]` and `#[derive(Supervisor)]`: from a struct to its builder.
//!
//! Parsed into a [`Node`], checked, and then expanded, which can't fail any more. With a mistake in
//! it, the struct and its methods are still there, so that code that uses them is not wrong, too.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{DeriveInput, Generics, Item, Path, parse_quote};

use crate::args::Args;
use crate::attributes::{derives, take_second};
use crate::bounds::require;
use crate::check;
use crate::errors::Errors;
use crate::keys::Place;
use crate::node::{ChildField, Form, Kind, Node, is_generic};
use crate::shown::{Shown, repeated};

/// `#[supervisor(args)] item`
pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
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
    let args = Args::parse(Place::Supervisor, args, &mut errors);
    let node = Node::of(Form::Attribute, args, &mut item, &mut errors);
    if let Some(derive) = item.attrs.iter().find(|attribute| derives("Supervisor", attribute)) {
        // What it writes is enough for what uses the struct.
        errors.at(derive, SUPERVISOR_TWICE);
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    }
    let methods = finish(&node, errors);
    quote!(#item #methods)
}

/// `#[derive(Supervisor)] #[tree(args)] item`
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
    let args = match trees.next() {
        Some(tree) => Args::of(Place::Supervisor, tree, &mut errors),
        None => Args::parse(Place::Supervisor, TokenStream::new(), &mut errors),
    };
    if let Some(second) = trees.next() {
        errors.at(second, "there is a `#[tree(…)]` already; put all options into one");
    }
    let node = Node::of(Form::Derive, args, &mut item, &mut errors);
    finish(&node, errors)
}

const SUPERVISOR_TWICE: &str =
    "`#[supervisor]` and `#[derive(Supervisor)]` do the same; remove one of the two";

fn finish(node: &Node, mut errors: Errors) -> TokenStream {
    check::node(node, &mut errors);
    let methods = methods(node, errors.is_empty());
    let errors = errors.into_tokens();
    quote!(#methods #errors)
}

/// The token that makes it what it is.
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

/// `builder`, `into_child` and `run`; they do nothing if there was a mistake.
fn methods(node: &Node, correct: bool) -> TokenStream {
    let Node { vis, ident, args, attributes, .. } = node;
    let krate = &args.krate();
    let generics = generics(node, krate);
    let (impl_generics, ty_generics, bounds) = generics.split_for_impl();
    let (builder, into_child, run) = if correct {
        let builder = builder(node, krate);
        let itself = args.group("child").map(|itself| itself.calls(krate));
        (
            builder,
            quote!(self.builder().into_child() #itself),
            quote!(self.builder().build()?.run().await),
        )
    } else {
        (quote!(loop {}), quote!(loop {}), quote!(loop {}))
    };
    let name = node.name.value();
    let about = format!(" Describes the supervisor `{name}`, with its children, to go on by hand.");
    quote! {
        #(#attributes)*
        impl #impl_generics #ident #ty_generics #bounds {
            #[doc = #about]
            #vis fn builder(self) -> #krate::SupervisorBuilder {
                #builder
            }

            /// Makes it a child of another supervisor.
            #vis fn into_child(self) -> #krate::ChildSpec {
                #into_child
            }

            /// Builds the tree and runs it until it ends.
            ///
            /// # Errors
            ///
            /// If the tree can't be built, gives up, or leaves something behind.
            #[allow(clippy::future_not_send, reason = "it is `Send` if the struct is")]
            #vis async fn run(self) -> ::core::result::Result<(), #krate::RunError> {
                #run
            }
        }

        #(#attributes)*
        impl #impl_generics ::core::convert::From<#ident #ty_generics> for #krate::ChildSpec #bounds {
            fn from(__node: #ident #ty_generics) -> Self {
                __node.into_child()
            }
        }
    }
}

/// The struct's own generics, with what its children need of type parameters.
fn generics(node: &Node, krate: &Path) -> Generics {
    let mut generics = node.generics.clone();
    for child in node.children.iter().filter(|child| is_generic(&child.ty, &node.generics)) {
        match child.kind {
            Kind::Child => require(&mut generics, &child.ty, parse_quote!(#krate::Component)),
            Kind::Supervisor => {
                let ty = repeated(&child.ty);
                let from = parse_quote!(#krate::ChildSpec: ::core::convert::From<#ty>);
                generics.make_where_clause().predicates.push(from);
            }
            Kind::Dynamic => {}
        }
    }
    generics
}

/// The calls of a builder, as one expression. A field that may not be there can't be in the middle of
/// one, so its call is a statement.
fn builder(node: &Node, krate: &Path) -> TokenStream {
    let name = &node.name;
    let options = node.args.calls(krate);
    let mut checks = TokenStream::new();
    let mut statements = TokenStream::new();
    let mut builder = quote!(#krate::Supervisor::builder(#name) #options);
    for child in &node.children {
        let cfgs = &child.cfgs;
        let spec = spec(child, krate);
        if child.kind == Kind::Dynamic {
            let check = is_dynamic(child, krate);
            checks.extend(quote!(#(#cfgs)* #check));
        }
        if cfgs.is_empty() {
            builder.extend(quote!(.child(#spec)));
        } else {
            statements.extend(quote! {
                let __builder = #builder;
                #(#cfgs)*
                let __builder = __builder.child(#spec);
            });
            builder = quote!(__builder);
        }
    }
    quote!(#checks #statements #builder)
}

fn spec(child: &ChildField, krate: &Path) -> TokenStream {
    let ChildField { ident, ty, name, args, .. } = child;
    // What the compiler has to say of the value, it says of the field's type.
    let shown = Shown::at(ty);
    let value = shown.field(ident);
    match child.kind {
        Kind::Child => {
            let component = shown.call(quote!(#krate::component), quote!(#name, #value));
            let calls = args.calls(krate);
            quote!(#component #calls)
        }
        Kind::Supervisor => {
            let from = quote!(<#krate::ChildSpec as ::core::convert::From<_>>::from);
            let from = shown.call(from, value);
            let calls = args.calls(krate);
            quote!(#from.named(#name) #calls)
        }
        Kind::Dynamic => {
            let (of_builder, of_child) = args.split_calls(krate);
            let builder = quote!(#krate::DynamicSupervisor::builder(#name) #of_builder);
            if of_child.is_empty() { builder } else { quote!(#builder.into_child() #of_child) }
        }
    }
}

/// There is nothing in the field, but it has to be of this type.
fn is_dynamic(child: &ChildField, krate: &Path) -> TokenStream {
    let shown = Shown::at(&child.ty);
    let dynamic = shown.all(quote!(#krate::DynamicSupervisor));
    let value = shown.field(&child.ident);
    quote!(let _: #dynamic = #value;)
}
