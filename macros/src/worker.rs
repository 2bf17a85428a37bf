//! `#[worker]`: from an `async fn` to a constructor of child specs, or from an `impl` block to a
//! `Child`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Item, ItemFn, ItemImpl};

use crate::attributes::take_second;
use crate::errors::Errors;
use crate::keys::Place;
use crate::model::{Bodies, Handler};
use crate::parse::Args;
use crate::{check, expand};

/// Expands `#[worker(options)] item`.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let (empty, bodies) = Bodies::take(item.clone());
    let error = match syn::parse2(empty) {
        Ok(Item::Fn(item)) => return function(options, item, bodies),
        Ok(Item::Impl(item)) => return block(options, item, bodies),
        Ok(Item::Struct(item)) => {
            let instead = ", or write `#[supervisor]` if the fields are children";
            Error::new(item.struct_token.span(), format!("{NO_WORKER}{instead}"))
        }
        Ok(other) => Error::new(other.span(), NO_WORKER),
        Err(error) => error,
    };
    let error = error.into_compile_error();
    quote!(#item #error)
}

const NO_WORKER: &str =
    "a worker is an `async fn`, or the `impl` block of a type; put `#[worker]` there";

/// Parses the options, and refuses a second attribute.
fn args(place: Place, options: TokenStream, attrs: &mut Vec<Attribute>) -> (Args, Errors) {
    let mut errors = Errors::default();
    if let Some(second) = take_second("worker", attrs) {
        errors.at(second, "there is a `#[worker]` already; put all options into one");
    }
    (Args::parse(place, options, &mut errors), errors)
}

fn function(options: TokenStream, mut item: ItemFn, bodies: Bodies) -> TokenStream {
    let (args, mut errors) = args(Place::Function, options, &mut item.attrs);
    check::function(&args, &item, &mut errors);
    let expansion = if item.sig.receiver().is_some() {
        // A method can't become a constructor.
        bodies.put_back(item.into_token_stream())
    } else {
        expand::function(&args, item, bodies, errors.is_empty())
    };
    quote!(#expansion #errors)
}

fn block(options: TokenStream, mut item: ItemImpl, bodies: Bodies) -> TokenStream {
    let (args, mut errors) = args(Place::Block, options, &mut item.attrs);
    let handlers = Handler::take(&mut item, &mut errors);
    let expansion = if let Some((path, _)) = &item.trait_ {
        errors.at(
            path,
            "`#[worker]` implements `Child` itself; write `impl` and the type alone, or implement \
             the trait yourself, with `#[async_trait]`",
        );
        expand::foreign_trait(&args, &item, bodies)
    } else {
        check::block(&args, &item, &handlers, &bodies, &mut errors);
        expand::block(&args, item, &handlers, bodies, errors.is_empty())
    };
    quote!(#expansion #errors)
}
