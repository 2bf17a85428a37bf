//! The paths and spans of generated code: errors that only the compiler can find underline the user's tokens.
//!
//! Code located at the user's tokens still counts as generated: its names resolve where the macro is
//! called, and lints skip it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, ReturnType, Signature};

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

    /// Returns the place of a function's return type, or else of its name. Errors about the future
    /// underline it.
    pub(crate) fn of_output(signature: &Signature) -> Self {
        match &signature.output {
            ReturnType::Default => Self::of(&signature.ident),
            ReturnType::Type(_, ty) => Self::of(ty),
        }
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
        TokenTree::Group(inner) => {
            let span = generated_at(inner.span());
            group(inner.delimiter(), repeat(inner.stream()), span).into()
        }
        mut token => {
            token.set_span(generated_at(token.span()));
            token
        }
    });
    tokens.collect()
}

/// Returns a group at this place.
pub(crate) fn group(delimiter: Delimiter, contents: TokenStream, span: Span) -> Group {
    let mut group = Group::new(delimiter, contents);
    group.set_span(span);
    group
}

/// Returns the span of generated code that is reported at `place`.
pub(crate) fn generated_at(place: Span) -> Span {
    Span::call_site().located_at(place)
}

/// The path to verger: `::verger`, or the one that the key `crate` names.
pub(crate) struct Krate(pub(crate) Path);

impl Krate {
    /// Returns the full path of a public item. `path` is its path below the crate root.
    pub(crate) fn item(&self, path: &str) -> TokenStream {
        self.item_at(path, Span::call_site())
    }

    /// Returns the full path of an item, reported at `span` if it is wrong.
    pub(crate) fn item_at(&self, path: &str, span: Span) -> TokenStream {
        let Self(krate) = self;
        let segments = path.split("::").map(|segment| Ident::new(segment, span));
        quote_spanned!(span=> #krate #(::#segments)*)
    }
}
