//! The call of `worker`, `worker_with`, `worker_with_mailbox`, `every` … that makes the spec of a function.

use proc_macro2::{Delimiter, Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, LitStr, Pat, parse_quote};

use super::calls::value_of;
use crate::model::{Argument, Param, Params};
use crate::parse::{Args, Value};
use crate::span::{Krate, SpanRange, generated_at, group};

/// A worker function, and what it is called with.
pub(super) struct WorkerCall<'a> {
    pub(super) krate: &'a Krate,
    pub(super) name: LitStr,
    /// The path of the function.
    pub(super) run: TokenStream,
    pub(super) params: Params,
    /// The return type: errors about the function's future underline it.
    pub(super) range: SpanRange,
}

impl WorkerCall<'_> {
    /// Returns the expression that makes the spec.
    pub(super) fn spec(&self, args: &Args) -> TokenStream {
        for (key, builder) in [("every", "periodic::Every"), ("cron", "periodic::Cron")] {
            if let Some(value) = args.value(key) {
                let made = self.periodic(key, &value_of(value, self.krate));
                let builder = self.krate.item(builder);
                let made = match args.value("schedule") {
                    Some(Value::Expression(options)) => {
                        let function = function(options, &quote!(#builder<_>));
                        quote!(#function(#made))
                    }
                    _ => made,
                };
                let child_spec = self.krate.item("ChildSpec");
                return quote!(<#child_spec as ::core::convert::From<_>>::from(#made));
            }
        }
        let name = &self.name;
        let thread = ["blocking", "local"].into_iter().find(|key| args.get(key).is_some());
        let is_stateless = self.params.arguments().next().is_none();
        let (function, passed) = if let Some(constructor) = thread {
            let run = self.once_per_incarnation();
            (constructor, quote!(#name, #run))
        } else if self.params.inbox().is_some() {
            let run = self.once_per_incarnation();
            ("worker_with_mailbox", quote!(#name, __mailbox, #run))
        } else if is_stateless || self.params.has_services() {
            let run = self.once_per_incarnation();
            ("worker", quote!(#name, #run))
        } else {
            let (state, run) = self.with_state();
            ("worker_with", quote!(#name, #state, #run))
        };
        self.range.call(self.krate.item(function), passed)
    }

    /// Returns the call of `every` or `cron`, with a closure that calls the function once for each run.
    fn periodic(&self, constructor: &str, when: &TokenStream) -> TokenStream {
        let name = &self.name;
        let run = Ident::new("__run", generated_at(self.range.first()));
        let context = self.krate.item("periodic::RunContext::context");
        let context = quote!(#context(&#run));
        let first = match self.params.of_run {
            true => quote!(::core::clone::Clone::clone(&#run)),
            false => quote!(::core::clone::Clone::clone(#context)),
        };
        let first = self.params.context.as_ref().map(|_| first);
        let call = self.call(self.range, first, &context);
        let run_context = self.krate.item("periodic::RunContext");
        let closure = quote!(move |#run: #run_context| #call);
        self.range.call(self.krate.item(constructor), quote!(#name, #when, #closure))
    }

    /// Returns the function, or a closure that passes everything to the right parameters.
    fn once_per_incarnation(&self) -> TokenStream {
        let Self { run, params, .. } = self;
        let arguments: Vec<_> = params.arguments().collect();
        let has_services = params.has_services();
        if arguments.is_empty() && params.context.is_some() && !has_services {
            return run.clone();
        }
        let own = Ident::new("__ctx", generated_at(self.range.first()));
        let ctx = match &params.context {
            Some(ctx) => quote!(#ctx),
            None if has_services => quote!(#own),
            None => quote!(_),
        };
        let first = params.context.as_ref().map(|ctx| match has_services {
            true => quote!(::core::clone::Clone::clone(&#ctx)),
            false => quote!(#ctx),
        });
        let inbox = params.inbox().into_iter().map(|inbox| &inbox.name);
        let keyword = (!arguments.is_empty()).then(|| quote!(move));
        // Errors about the closure are errors about its captures.
        let range = match &*arguments {
            [only] if params.inbox().is_some() && !has_services => SpanRange::of(&only.ty),
            _ => self.range,
        };
        let head = range.locate(quote!(#keyword |#ctx #(, #inbox)*|));
        let call = self.call(range, first, &quote!(&#ctx));
        quote!(#head #call)
    }

    /// Returns the arguments, and the function or a closure that takes clones of them.
    fn with_state(&self) -> (TokenStream, TokenStream) {
        let Self { run, params, range, .. } = self;
        let names: Vec<_> = params.arguments().map(|argument| &argument.name).collect();
        let values: Vec<_> = params.arguments().map(value).collect();
        let (state, pattern) = match &*values {
            [one] => (quote!(#one), quote!(#(#names)*)),
            _ => {
                let state = group(Delimiter::Parenthesis, quote!(#(#values),*), range.first());
                (quote!(#state), quote!((#(#names),*)))
            }
        };
        if params.context.is_some() && values.len() == 1 {
            return (state, run.clone());
        }
        let ctx = params.context.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
        let passed = params.context.iter().chain(names);
        (state, quote!(|#ctx, #pattern| #run(#(#passed),*)))
    }

    /// Returns a call of the function that passes everything to the right parameters.
    ///
    /// `context` is a reference to the context, for the services.
    fn call(
        &self,
        range: SpanRange,
        first: Option<TokenStream>,
        context: &TokenStream,
    ) -> TokenStream {
        let others = self.params.others.iter().map(|param| match param {
            Param::Argument(argument) => cloned(argument),
            Param::Inbox(inbox) => inbox.name.to_token_stream(),
            Param::Service(value) => {
                let at = SpanRange::of(value);
                let watch = at.locate(self.krate.item("Context::watch_service"));
                at.call(quote!(#watch::<#value>), at.locate(context.clone()))
            }
        });
        let passed = first.into_iter().chain(others);
        range.call(self.run.clone(), quote!(#(#passed),*))
    }
}

/// Returns the value of an argument. Errors about it underline its type.
fn value(argument: &Argument) -> Ident {
    let mut name = argument.name.clone();
    name.set_span(generated_at(argument.ty.span()));
    name
}

/// Returns a clone of the value, for one incarnation.
fn cloned(argument: &Argument) -> TokenStream {
    let name = &argument.name;
    let range = SpanRange::of(&argument.ty);
    let borrowed = range.locate(quote!(&#name));
    range.call(quote!(::core::clone::Clone::clone), borrowed)
}

/// Returns what is called for the options of a mailbox or a schedule, which take and return a value of type `ty`.
pub(super) fn function(options: &Expr, ty: &TokenStream) -> TokenStream {
    let function = match options {
        Expr::Path(path) => return path.to_token_stream(),
        Expr::Closure(closure) => with_type(closure, ty).into_token_stream(),
        other => other.to_token_stream(),
    };
    group(Delimiter::Parenthesis, function, SpanRange::of(options).first()).into_token_stream()
}

/// Adds the type of the parameter to a closure, which can't be inferred where it is called directly.
fn with_type(closure: &ExprClosure, ty: &TokenStream) -> ExprClosure {
    let mut closure = closure.clone();
    for param in &mut closure.inputs {
        if !matches!(param, Pat::Type(_)) {
            let pat = param.clone();
            *param = Pat::Type(parse_quote!(#pat: #ty));
        }
    }
    closure
}
