//! The macros of verger. Use them through `verger`, which re-exports them and shows what they do.
//!
//! Each goes through the same stages: `args` reads the keys, `node` or `worker` takes the item
//! apart, `check` looks at what concerns several keys, and what is left can be expanded without
//! failing. The expansion is what somebody would have written by hand with the public builder.
//!
//! A mistake is told once, with what to write instead, where it can be mended; the item is still
//! there, so that what uses it is not wrong as well. What only the compiler can find, it tells where
//! `shown` says.

mod advice;
mod args;
mod attributes;
mod backoff;
#[cfg(test)]
mod book;
mod bounds;
mod check;
mod errors;
mod failure_log;
mod keys;
mod limits;
mod made;
mod node;
mod number;
mod settings;
mod shown;
mod supervisor;
#[cfg(test)]
mod tests;
mod value;
mod words;
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
