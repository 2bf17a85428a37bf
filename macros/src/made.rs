//! A value of one of verger's types, as somebody would make it by hand.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Path;

use crate::shown::at;
use crate::value::Value;

/// `Type::function(arguments).method(arguments)…`
pub(crate) struct Made {
    ty: &'static str,
    function: &'static str,
    arguments: Vec<Value>,
    /// What is called then.
    methods: Vec<(&'static str, Vec<Value>)>,
    /// Where what the compiler has to say of it is shown.
    span: Span,
}

impl Made {
    pub(crate) fn new(
        ty: &'static str,
        function: &'static str,
        span: Span,
        arguments: Vec<Value>,
    ) -> Self {
        Self { ty, function, arguments, methods: Vec::new(), span }
    }

    pub(crate) fn then(mut self, method: &'static str, arguments: Vec<Value>) -> Self {
        self.methods.push((method, arguments));
        self
    }

    pub(crate) fn tokens(&self, krate: &Path) -> TokenStream {
        let ident = |name| Ident::new(name, at(self.span));
        let arguments = |values: &[Value]| {
            let values = values.iter().map(|value| value.tokens(krate));
            quote!((#(#values),*))
        };
        let (ty, function) = (ident(self.ty), ident(self.function));
        let first = arguments(&self.arguments);
        let methods = self.methods.iter().map(|(method, values)| {
            let (method, arguments) = (ident(method), arguments(values));
            quote!(.#method #arguments)
        });
        quote!(#krate::#ty::#function #first #(#methods)*)
    }
}

impl From<Made> for Value {
    fn from(made: Made) -> Self {
        Self::Made(Box::new(made))
    }
}
