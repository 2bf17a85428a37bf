//! The keys about a child's configuration become one call.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use super::values;
use crate::parse::{Arg, Args, Setting, Value};
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at};

/// Returns the call for `config`, with those for the other keys as its argument.
///
/// The path is located at the key, because it doesn't exist without the feature `config`. The rest is located at
/// the type, which has to meet the bounds of `new`.
pub(super) fn config(args: &Args, key: &Ident, ty: &Type, krate: &Krate) -> TokenStream {
    let child_config = SpanRange::of(key).locate(krate.item("config::ChildConfig"));
    let new = quote_spanned!(SpanRange::of(ty).first()=> #child_config::<#ty>::new());
    let options = args.iter().filter(|arg| arg.key.is_of_config());
    let options: TokenStream = options.map(|arg| option(arg, krate)).collect();
    quote_spanned!(generated_at(key.span())=> .#key(#new #options))
}

fn option(arg: &Arg, krate: &Krate) -> TokenStream {
    let method = match arg.key.name {
        "config_section" => &Ident::new("section", arg.ident.span()),
        _ => &arg.ident,
    };
    match &arg.setting {
        Setting::Flag => quote!(.#method()),
        // The type is set already.
        Setting::Value(Value::Type(_)) | Setting::Group(_) | Setting::Invalid => TokenStream::new(),
        Setting::Value(value) => {
            let value = values::value(value, krate);
            quote!(.#method(#value))
        }
    }
}
