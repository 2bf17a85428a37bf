//! The bodies of functions, which are taken out before an item is parsed and put back afterwards.
//!
//! A macro doesn't need them, and they may contain syntax that only the compiler can parse.

use std::collections::VecDeque;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::signature::names;
use crate::span::group;

pub(crate) struct Bodies(VecDeque<Group>);

impl Bodies {
    /// Returns the item with empty bodies, and the bodies.
    pub(crate) fn take(item: TokenStream) -> (TokenStream, Self) {
        let mut bodies = VecDeque::new();
        let item = replace(item, |body| {
            let empty = group(Delimiter::Brace, TokenStream::new(), body.span());
            bodies.push_back(body);
            empty
        });
        (item, Self(bodies))
    }

    /// Returns whether an identifier occurs in one of the bodies.
    pub(crate) fn mention(&self, ident: &Ident) -> bool {
        self.0.iter().any(|body| names(&body.stream(), &|name| name == ident))
    }

    /// Returns the item with its bodies.
    pub(crate) fn put_back(mut self, item: TokenStream) -> TokenStream {
        replace(item, |empty| self.0.pop_front().unwrap_or(empty))
    }
}

/// Replaces the body of a function, or those of the functions of an `impl` block.
fn replace(item: TokenStream, mut body: impl FnMut(Group) -> Group) -> TokenStream {
    if !is_block(&item) {
        return replace_level(item, &mut body);
    }
    let mut block = |block: Group| {
        group(Delimiter::Brace, replace_level(block.stream(), &mut body), block.span())
    };
    replace_level(item, &mut block)
}

/// Replaces the braces that end an item.
fn replace_level(items: TokenStream, body: &mut dyn FnMut(Group) -> Group) -> TokenStream {
    let mut tokens = items.into_iter().peekable();
    let mut replaced = TokenStream::new();
    while let Some(token) = tokens.next() {
        // The braces in `Array<{ N }>` are no body.
        let ends = match tokens.peek() {
            Some(TokenTree::Punct(punct)) => punct.as_char() == '#',
            _ => true,
        };
        replaced.extend([match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && ends => {
                body(group).into()
            }
            token => token,
        }]);
    }
    replaced
}

/// Returns whether it is an `impl` block, and not a function that returns an `impl Trait`.
fn is_block(item: &TokenStream) -> bool {
    let keyword = item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "impl" || ident == "fn" => Some(ident),
        _ => None,
    });
    keyword.is_some_and(|keyword| keyword == "impl")
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
