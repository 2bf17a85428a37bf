//! The macros of verger. Use them through `verger`, which re-exports and documents them.
//!
//! An attribute passes four stages: `parse` reads its keys, `model` describes the item under it,
//! `check` finds the mistakes, and `expand` writes the calls of the public builder, which can't fail.
//! `supervisor` and `worker` connect the stages.
//!
//! 1. A mistake is reported once, at the token that has to change, with what to write instead.
//! 2. An item with a mistake is still there, with its methods, so that no further errors follow.
//! 3. Errors that only the compiler can find underline the user's tokens: see `span`.

mod attributes;
mod check;
mod errors;
mod expand;
mod hints;
mod keys;
mod model;
mod parse;
mod span;
mod supervisor;
#[cfg(test)]
mod tests;
mod worker;

use proc_macro::TokenStream;

#[expect(missing_docs, reason = "it is documented where it is re-exported")]
#[proc_macro_attribute]
pub fn supervisor(args: TokenStream, item: TokenStream) -> TokenStream {
    supervisor::attribute(args.into(), item.into()).into()
}

#[expect(missing_docs, reason = "it is documented where it is re-exported")]
#[proc_macro_derive(Supervisor, attributes(tree, child, dynamic))]
pub fn derive_supervisor(item: TokenStream) -> TokenStream {
    supervisor::derive(item.into()).into()
}

#[expect(missing_docs, reason = "it is documented where it is re-exported")]
#[proc_macro_attribute]
pub fn worker(args: TokenStream, item: TokenStream) -> TokenStream {
    worker::attribute(args.into(), item.into()).into()
}
