//! The book shows what the macros really write and say: its page about them is held against them.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Item, Meta};

use crate::{supervisor, worker};

const PAGE: &str = include_str!("../../book/src/components.md");

#[test]
fn the_book_shows_what_the_macros_write() {
    for (input, shown) in
        [("rust,input", "rust,expansion"), ("rust,input,mailbox", "rust,expansion,mailbox")]
    {
        let expansion = syn::parse2(expand(&listing(input))).expect("macros write items");
        let expansion = prettyplease::unparse(&expansion);
        // Not `assert_eq`, so that it can be copied from here.
        assert!(
            listing(shown) == expansion,
            "in book/src/components.md, what becomes of the listing `{input}` is not shown as\n\n{expansion}",
        );
    }
}

#[test]
fn the_book_shows_what_the_macros_say() {
    let expansion = expand(&listing("rust,compile_fail,mistake")).to_string();
    let told = listing("text,told");
    let messages: Vec<_> = told.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert!(!messages.is_empty(), "in book/src/components.md, the listing `told` tells nothing");
    assert_eq!(expansion.matches("compile_error").count(), messages.len(), "{expansion}");
    for message in messages {
        assert!(expansion.contains(message), "{message}\n\n{expansion}");
    }
}

/// The listing that begins with this, without the lines that are hidden.
fn listing(info: &str) -> String {
    let begin = format!("```{info}");
    let lines = PAGE.lines().skip_while(|line| **line != begin).skip(1);
    let lines = lines.take_while(|line| *line != "```");
    let shown = lines.filter(|line| *line != "#" && !line.starts_with("# "));
    shown.flat_map(|line| [line, "\n"]).collect()
}

/// What becomes of a listing's items.
fn expand(listing: &str) -> TokenStream {
    let items = syn::parse_file(listing).expect("it is Rust").items;
    items.into_iter().map(expand_item).collect()
}

fn expand_item(mut item: Item) -> TokenStream {
    let attributes = match &mut item {
        Item::Struct(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        _ => return quote!(#item),
    };
    let is = |attribute: &Attribute, name| attribute.path().is_ident(name);
    let ours = |attribute: &Attribute| is(attribute, "supervisor") || is(attribute, "worker");
    let Some(position) = attributes.iter().position(ours) else { return quote!(#item) };
    let attribute = attributes.remove(position);
    let args = match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    match is(&attribute, "supervisor") {
        true => supervisor::attribute(args, item.into_token_stream()),
        false => worker::attribute(args, item.into_token_stream()),
    }
}
