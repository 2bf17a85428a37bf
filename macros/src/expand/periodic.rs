//! The call of `every` or `cron` that makes the spec of a function.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, LitStr};

use super::mailbox::{in_parentheses, with_type};
use super::values;
use super::worker_call::Argument;
use crate::model::ServiceParam;
use crate::parse::{Args, Value};
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at};

/// When a function is called.
pub(super) struct Schedule<'a> {
    constructor: &'static str,
    builder: &'static str,
    value: &'a Value,
    options: Option<&'a Expr>,
}

/// The function, and what it is called with.
pub(super) struct Run {
    pub(super) run: TokenStream,
    pub(super) context: Option<Ident>,
    /// Whether the context is that of a run.
    pub(super) of_run: bool,
    pub(super) services: Vec<ServiceParam>,
    pub(super) arguments: Vec<Argument>,
    pub(super) range: SpanRange,
}

impl<'a> Schedule<'a> {
    /// Returns the schedule of a function that is called periodically.
    pub(super) fn of(args: &'a Args) -> Option<Self> {
        let options = match args.value("schedule") {
            Some(Value::Expression(options)) => Some(options),
            _ => None,
        };
        let kinds = [("every", "periodic::Every"), ("cron", "periodic::Cron")];
        kinds.into_iter().find_map(|(constructor, builder)| {
            let value = args.value(constructor)?;
            Some(Self { constructor, builder, value, options })
        })
    }

    pub(super) fn call(&self, name: &LitStr, run: &Run, krate: &Krate) -> TokenStream {
        let (value, closure) = (values::value(self.value, krate), run.closure(krate));
        let constructor = krate.item(self.constructor);
        let mut made = run.range.call(constructor, quote!(#name, #value, #closure));
        if let Some(options) = self.options {
            let range = SpanRange::of(options);
            let builder = krate.item(self.builder);
            let function = match options {
                Expr::Path(path) => path.to_token_stream(),
                Expr::Closure(closure) => {
                    in_parentheses(range, with_type(closure, &quote!(#builder<_>)))
                }
                other => in_parentheses(range, other),
            };
            made = quote!(#function(#made));
        }
        let child_spec = krate.item("ChildSpec");
        quote!(<#child_spec as ::core::convert::From<_>>::from(#made))
    }
}

impl Run {
    /// Returns a closure that passes everything to the right parameters, once for each run.
    fn closure(&self, krate: &Krate) -> TokenStream {
        let Self { run, context, of_run, services, arguments, range } = self;
        let own = Ident::new("__run", generated_at(range.first()));
        let ctx = krate.item("periodic::RunContext::context");
        let mut passed: Vec<_> = arguments.iter().map(Argument::cloned).collect();
        for ServiceParam { index, value } in services {
            let at = SpanRange::of(value);
            let watch = at.locate(krate.item("Context::watch_service"));
            passed.insert(*index, at.call(quote!(#watch::<#value>), quote!(#ctx(&#own))));
        }
        let first = context.as_ref().map(|_| match of_run {
            true => quote!(::core::clone::Clone::clone(&#own)),
            false => quote!(::core::clone::Clone::clone(#ctx(&#own))),
        });
        let passed = first.into_iter().chain(passed);
        let run_context = krate.item("periodic::RunContext");
        let call = range.call(run.clone(), quote!(#(#passed),*));
        quote!(move |#own: #run_context| #call)
    }
}
