//! The spans of generated code: errors that only the compiler can find underline the user's tokens.
//!
//! Code located at the user's tokens still counts as generated: its names resolve where the macro is
//! called, and lints skip it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// The tokens that the compiler underlines, from the first one to the last.
#[derive(Clone, Copy)]
pub(crate) struct SpanRange {
    first: Span,
    last: Span,
}

impl SpanRange {
    pub(crate) fn of(written: impl ToTokens) -> Self {
        let mut spans = written.into_token_stream().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        Self { first: generated_at(first), last: generated_at(spans.last().unwrap_or(first)) }
    }

    pub(crate) fn first(self) -> Span {
        self.first
    }

    /// Locates code here, except for the contents of its groups.
    pub(crate) fn locate(self, code: TokenStream) -> TokenStream {
        let mut code: Vec<_> = code.into_iter().collect();
        for token in &mut code {
            token.set_span(self.first);
        }
        if let Some(last) = code.last_mut() {
            last.set_span(self.last);
        }
        code.into_iter().collect()
    }

    /// Returns `function(arguments)`, located here.
    pub(crate) fn call(self, function: TokenStream, arguments: TokenStream) -> TokenStream {
        let arguments = Group::new(Delimiter::Parenthesis, arguments);
        self.locate(quote!(#function #arguments))
    }

    /// Returns `self.field`, located here.
    pub(crate) fn field(self, field: &Ident) -> TokenStream {
        self.locate(quote!(self.#field))
    }
}

/// Returns the user's tokens once more, as generated code at the same places.
pub(crate) fn repeat(written: impl ToTokens) -> TokenStream {
    let tokens = written.into_token_stream().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut copy = Group::new(group.delimiter(), repeat(group.stream()));
            copy.set_span(generated_at(group.span()));
            TokenTree::Group(copy)
        }
        mut token => {
            token.set_span(generated_at(token.span()));
            token
        }
    });
    tokens.collect()
}

/// Returns the span of generated code that is reported at `place`.
pub(crate) fn generated_at(place: Span) -> Span {
    Span::call_site().located_at(place)
}
