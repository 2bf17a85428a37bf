//! The book's pages about the macros show their real expansions and errors.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Item, Meta};

use crate::{supervisor, worker};

const COMPONENTS: &str = include_str!("../../../book/src/components.md");
const EXPANSIONS: &str = include_str!("../../../book/src/expansions.md");

#[test]
fn the_book_shows_the_real_expansions() {
    for (input, shown) in
        [("rust,input", "rust,expansion"), ("rust,input,mailbox", "rust,expansion,mailbox")]
    {
        let expansion =
            syn::parse2(expand(&listing(EXPANSIONS, input))).expect("macros write items");
        let expansion = prettyplease::unparse(&expansion);
        // The message has the whole listing, so that it can be copied into the book.
        assert!(
            listing(EXPANSIONS, shown) == expansion,
            "in book/src/expansions.md, the expansion of the listing `{input}` is\n\n{expansion}",
        );
    }
}

#[test]
fn the_book_shows_the_real_errors() {
    let expansion = expand(&listing(COMPONENTS, "rust,compile_fail,mistake")).to_string();
    let shown = listing(COMPONENTS, "text,errors");
    let messages: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert!(!messages.is_empty(), "in book/src/components.md, the listing `errors` has none");
    assert_eq!(expansion.matches("compile_error").count(), messages.len(), "{expansion}");
    for message in messages {
        assert!(expansion.contains(message), "{message}\n\n{expansion}");
    }
}

/// Returns the listing of a page that begins with `info`, without its hidden lines.
fn listing(page: &str, info: &str) -> String {
    let begin = format!("```{info}");
    let lines = page.lines().skip_while(|line| **line != begin).skip(1);
    let lines = lines.take_while(|line| *line != "```");
    let shown = lines.filter(|line| *line != "#" && !line.starts_with("# "));
    shown.flat_map(|line| [line, "\n"]).collect()
}

/// Expands the items of a listing.
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
