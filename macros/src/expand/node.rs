//! An annotated struct gets the methods `builder`, `into_child`, `application` and `run`, and a constant
//! for the name of each child.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Generics, Ident, Visibility, parse_quote};

use super::calls::{calls, split};
use crate::attributes::require;
use crate::keys::Place;
use crate::model::{ChildField, Node, is_generic};
use crate::span::{Krate, SpanRange, repeat};

/// Returns the constants and methods. The methods do nothing unless the struct is correct.
pub(crate) fn node(node: &Node, correct: bool) -> TokenStream {
    let Node { vis, ident, args, attributes, .. } = node;
    let krate = &args.krate();
    let [child_spec, supervisor_builder, application, run_error] =
        ["ChildSpec", "SupervisorBuilder", "Application", "RunError"].map(|item| krate.item(item));
    let generics = generics(node, krate);
    let (impl_generics, ty_generics, bounds) = generics.split_for_impl();
    let itself = args.group("child").map(|itself| calls(itself, krate));
    let bodies = [
        builder(node, krate),
        quote!(self.builder().into_child() #itself),
        quote!(#application::new(self.builder())),
        quote!(self.builder().build()?.run().await),
    ];
    let [builder, into_child, into_application, run] =
        bodies.map(|body| if correct { body } else { quote!(loop {}) });
    let about = format!(" Returns the builder of the supervisor `{}`.", node.name.value());
    let names = node.children.iter().filter_map(|child| name(child, vis));
    quote! {
        #(#attributes)*
        impl #impl_generics #ident #ty_generics #bounds {
            #(#names)*

            #[doc = #about]
            #vis fn builder(self) -> #supervisor_builder {
                #builder
            }

            /// Returns the spec of this supervisor as a child.
            #vis fn into_child(self) -> #child_spec {
                #into_child
            }

            /// Returns the program that runs this supervisor as its root: with signals, stages and an exit code.
            #vis fn application(self) -> #application {
                #into_application
            }

            /// Builds the tree and runs it until it ends by itself. Signals don't stop it: see
            /// [`application`](Self::application).
            ///
            /// # Errors
            ///
            /// If the tree can't be built, gives up, or leaves something behind.
            #[allow(clippy::future_not_send, reason = "the future is `Send` if the struct is")]
            #vis async fn run(self) -> ::core::result::Result<(), #run_error> {
                #run
            }
        }

        #(#attributes)*
        impl #impl_generics ::core::convert::From<#ident #ty_generics> for #child_spec #bounds {
            fn from(__node: #ident #ty_generics) -> Self {
                __node.into_child()
            }
        }
    }
}

/// Returns the constant for the name of a child.
fn name(child: &ChildField, vis: &Visibility) -> Option<TokenStream> {
    let ChildField { ident, name, cfgs, .. } = child;
    let mut constant: Ident = syn::parse_str(&ident.unraw().to_string().to_uppercase()).ok()?;
    constant.set_span(ident.span());
    let about = format!(" The name of the child `{}`.", name.value());
    Some(quote! {
        #(#cfgs)*
        #[doc = #about]
        #[allow(dead_code, reason = "not every name is used")]
        #vis const #constant: &'static ::core::primitive::str = #name;
    })
}

/// Returns the struct's generics, with the bounds that the fields need.
fn generics(node: &Node, krate: &Krate) -> Generics {
    let (component, child_spec) = (krate.item("spec::Component"), krate.item("ChildSpec"));
    let mut generics = node.generics.clone();
    for child in node.children.iter().filter(|child| is_generic(&child.ty, &node.generics)) {
        match child.args.place {
            Place::Field => require(&mut generics, &child.ty, &parse_quote!(#component)),
            Place::Nested => {
                let ty = repeat(&child.ty);
                let from = parse_quote!(#child_spec: ::core::convert::From<#ty>);
                generics.make_where_clause().predicates.push(from);
            }
            _ => {}
        }
    }
    generics
}

/// Returns the calls of the builder. A field with a `cfg` needs a statement, the others are one chain.
fn builder(node: &Node, krate: &Krate) -> TokenStream {
    let name = &node.name;
    let supervisor = krate.item("Supervisor");
    let options = calls(&node.args, krate);
    let mut checks = TokenStream::new();
    let mut statements = TokenStream::new();
    let mut builder = quote!(#supervisor::builder(#name) #options);
    for child in &node.children {
        let cfgs = &child.cfgs;
        let spec = spec(child, krate);
        if child.args.place == Place::Dynamic {
            let check = check_dynamic(child, krate);
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

fn spec(child: &ChildField, krate: &Krate) -> TokenStream {
    let ChildField { ident, ty, name, args, .. } = child;
    // Errors about the value underline the field's type.
    let range = SpanRange::of(ty);
    let value = range.field(ident);
    match args.place {
        Place::Dynamic => {
            let dynamic = krate.item("DynamicSupervisor");
            let (of_builder, of_child) = split(args, krate);
            let builder = quote!(#dynamic::builder(#name) #of_builder);
            if of_child.is_empty() { builder } else { quote!(#builder.into_child() #of_child) }
        }
        Place::Nested => {
            let child_spec = krate.item("ChildSpec");
            let from = quote!(<#child_spec as ::core::convert::From<_>>::from);
            let from = range.call(from, value);
            let calls = calls(args, krate);
            quote!(#from.named(#name) #calls)
        }
        _ => {
            let component = range.call(krate.item("component"), quote!(#name, #value));
            let calls = calls(args, krate);
            quote!(#component #calls)
        }
    }
}

/// Returns a statement that checks the field's type, whose value isn't needed.
fn check_dynamic(child: &ChildField, krate: &Krate) -> TokenStream {
    let range = SpanRange::of(&child.ty);
    let dynamic = range.locate(krate.item("DynamicSupervisor"));
    let value = range.field(&child.ident);
    quote!(let _: #dynamic = #value;)
}
