//! The bodies of functions, which are taken out before an item is parsed and put back afterwards.
//!
//! A macro doesn't need them, and they may contain syntax that only the compiler can parse.

use std::collections::VecDeque;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;

use super::signature::names;
use crate::span::group;

pub(crate) struct Bodies(VecDeque<TokenTree>);

impl Bodies {
    /// Returns the item with empty bodies, and the bodies.
    pub(crate) fn take(item: TokenStream) -> (TokenStream, Self) {
        let mut bodies = VecDeque::new();
        let empty = |body: TokenTree| {
            let empty = group(Delimiter::Brace, TokenStream::new(), body.span());
            bodies.push_back(body);
            empty.into()
        };
        let item = replace(item, empty);
        (item, Self(bodies))
    }

    /// Returns whether an identifier occurs in one of the bodies.
    pub(crate) fn mention(&self, ident: &Ident) -> bool {
        self.0.iter().any(|body| names(&body.to_token_stream(), &|name| name == ident))
    }

    /// Returns the item with its bodies.
    pub(crate) fn put_back(mut self, item: TokenStream) -> TokenStream {
        replace(item, |empty| self.0.pop_front().unwrap_or(empty))
    }
}

/// Replaces the body of a function, or those of the functions of an `impl` block.
fn replace(item: TokenStream, mut body: impl FnMut(TokenTree) -> TokenTree) -> TokenStream {
    let mut tokens: Vec<_> = item.into_iter().collect();
    let is_block = is_block(&tokens);
    match tokens.pop() {
        Some(TokenTree::Group(group)) if is_brace(&group) && is_block => {
            tokens.push(within(&group, body));
        }
        Some(TokenTree::Group(group)) if is_brace(&group) => {
            tokens.push(body(TokenTree::Group(group)));
        }
        last => tokens.extend(last),
    }
    tokens.into_iter().collect()
}

fn within(block: &Group, mut body: impl FnMut(TokenTree) -> TokenTree) -> TokenTree {
    let mut tokens = block.stream().into_iter().peekable();
    let mut items = TokenStream::new();
    while let Some(token) = tokens.next() {
        // The braces in `Array<{ N }>` are no body.
        let ends = match tokens.peek() {
            Some(TokenTree::Punct(punct)) => punct.as_char() == '#',
            _ => true,
        };
        items.extend([match token {
            TokenTree::Group(group) if is_brace(&group) && ends => body(TokenTree::Group(group)),
            token => token,
        }]);
    }
    group(Delimiter::Brace, items, block.span()).into()
}

/// Returns whether it is an `impl` block, and not a function that returns an `impl Trait`.
fn is_block(tokens: &[TokenTree]) -> bool {
    let keyword = tokens.iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "impl" || ident == "fn" => Some(ident),
        _ => None,
    });
    keyword.is_some_and(|keyword| keyword == "impl")
}

fn is_brace(group: &Group) -> bool {
    group.delimiter() == Delimiter::Brace
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn bodies_that_are_taken_are_put_back() {
        let items = [
            quote!(
                #[doc = "{ }"]
                pub async fn f(x: impl Fn() -> [u8; { 5 }]) -> impl Sized {
                    x;
                    { y }
                }
            ),
            quote!(
                impl<const N: usize> A<{ N }> for [B<{ N }>; { N }]
                where
                    C<{ N }>: D,
                {
                    #![inner]
                    const E: F<{ N }> = { 5 };
                    async fn g(&self) -> H<{ N }, { 2 }> {
                        x { y }
                    }
                    #[attribute]
                    fn h() {}
                    i! { x }
                }
            ),
            quote!(
                struct J {
                    k: L,
                }
            ),
            quote!(
                struct M;
            ),
            quote!(),
        ];
        let kept = [
            quote!(
                #[doc = "{ }"]
                pub async fn f(x: impl Fn() -> [u8; { 5 }]) -> impl Sized {}
            ),
            quote!(
                impl<const N: usize> A<{ N }> for [B<{ N }>; { N }]
                where
                    C<{ N }>: D,
                {
                    #![inner]
                    const E: F<{ N }> = { 5 };
                    async fn g(&self) -> H<{ N }, { 2 }> {}
                    #[attribute]
                    fn h() {}
                    i! {}
                }
            ),
            quote!(
                struct J {}
            ),
            quote!(
                struct M;
            ),
            quote!(),
        ];
        for (item, kept) in items.iter().zip(kept) {
            let (empty, bodies) = Bodies::take(item.clone());
            assert_eq!(empty.to_string(), kept.to_string());
            assert_eq!(bodies.put_back(empty).to_string(), item.to_string());
        }
    }
}
