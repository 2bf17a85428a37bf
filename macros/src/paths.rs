//! The paths of verger's items in an expansion.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::Path;

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
