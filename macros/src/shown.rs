//! Where the compiler shows the mistakes that only it can find: at what somebody has written.
//!
//! Generated code can be shown somewhere and still count as generated: its names mean what they mean
//! where the macro is called, and lints leave it alone.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// What somebody has written, from its first token to its last.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    first: Span,
    last: Span,
}

impl Shown {
    pub(crate) fn at(written: impl ToTokens) -> Self {
        let mut spans = written.into_token_stream().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        Self { first: at(first), last: at(spans.last().unwrap_or(first)) }
    }

    pub(crate) fn first(self) -> Span {
        self.first
    }

    /// Code of any kind, without what is in groups.
    pub(crate) fn all(self, code: TokenStream) -> TokenStream {
        let mut code: Vec<_> = code.into_iter().collect();
        for token in &mut code {
            token.set_span(self.first);
        }
        if let Some(last) = code.last_mut() {
            last.set_span(self.last);
        }
        code.into_iter().collect()
    }

    /// `function(arguments)`
    pub(crate) fn call(self, function: TokenStream, arguments: TokenStream) -> TokenStream {
        let arguments = Group::new(Delimiter::Parenthesis, arguments);
        self.all(quote!(#function #arguments))
    }

    /// `self.field`
    pub(crate) fn field(self, field: &Ident) -> TokenStream {
        self.all(quote!(self.#field))
    }
}

/// What somebody has written, repeated by generated code.
pub(crate) fn repeated(written: impl ToTokens) -> TokenStream {
    let tokens = written.into_token_stream().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut repeat = Group::new(group.delimiter(), repeated(group.stream()));
            repeat.set_span(at(group.span()));
            TokenTree::Group(repeat)
        }
        mut token => {
            token.set_span(at(token.span()));
            token
        }
    });
    tokens.collect()
}

/// The span of generated code that is shown at `place`.
pub(crate) fn at(place: Span) -> Span {
    Span::call_site().located_at(place)
}
