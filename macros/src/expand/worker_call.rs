//! The call of `worker`, `worker_with` or `worker_with_mailbox` that makes the spec of a function.

use proc_macro2::{Delimiter, Group, Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{LitStr, Type};

use crate::model::{InboxParam, ServiceParam};
use crate::paths::Krate;
use crate::span::{SpanRange, generated_at, group};

/// A parameter of the constructor: one of the function's, under a name of its own.
pub(super) struct Argument {
    pub(super) name: Ident,
    pub(super) ty: Type,
}

impl Argument {
    /// Returns its value. Errors about it underline its type.
    pub(super) fn value(&self) -> Ident {
        let mut name = self.name.clone();
        name.set_span(generated_at(self.ty.span()));
        name
    }

    /// Returns a clone of its value, for one incarnation.
    pub(super) fn cloned(&self) -> TokenStream {
        let name = &self.name;
        let range = SpanRange::of(&self.ty);
        let borrowed = range.locate(quote!(&#name));
        range.call(quote!(::core::clone::Clone::clone), borrowed)
    }
}

pub(super) struct WorkerCall<'a> {
    pub(super) krate: &'a Krate,
    pub(super) name: LitStr,
    /// The path of the function.
    pub(super) run: TokenStream,
    /// The name of the context, if the function takes one.
    pub(super) context: Option<Ident>,
    pub(super) inbox: Option<InboxParam>,
    pub(super) services: Vec<ServiceParam>,
    pub(super) arguments: Vec<Argument>,
    /// What makes the spec of a worker that has a thread of its own.
    pub(super) constructor: Option<&'static str>,
    /// The return type: errors about the function's future underline it.
    pub(super) range: SpanRange,
}

impl ToTokens for WorkerCall<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { krate, name, run, context, inbox, services, arguments, range, .. } = self;
        if let Some(constructor) = self.constructor {
            let run = self.on_thread();
            tokens.extend(range.call(krate.item(constructor), quote!(#name, #run)));
            return;
        }
        let names: Vec<_> = arguments.iter().map(|argument| &argument.name).collect();
        let (function, passed) = match (inbox, &*names, context) {
            (Some(_), ..) if !services.is_empty() => {
                let run = self.with_services();
                ("worker_with_mailbox", quote!(#name, __mailbox, #run))
            }
            _ if !services.is_empty() => {
                let run = self.with_services();
                ("worker", quote!(#name, #run))
            }
            (Some(inbox), ..) => {
                let run = self.with_inbox(inbox);
                ("worker_with_mailbox", quote!(#name, __mailbox, #run))
            }
            (None, [], Some(_)) => ("worker", quote!(#name, #run)),
            (None, [], None) => ("worker", quote!(#name, |_| #run())),
            (None, [one], context) => {
                let state = arguments[0].value();
                let run = match context {
                    Some(_) => run.clone(),
                    None => quote!(|_, #one| #run(#one)),
                };
                ("worker_with", quote!(#name, #state, #run))
            }
            (None, names, context) => {
                let state = self.state();
                let run = match context {
                    Some(ctx) => quote!(|#ctx, (#(#names),*)| #run(#ctx, #(#names),*)),
                    None => quote!(|_, (#(#names),*)| #run(#(#names),*)),
                };
                ("worker_with", quote!(#name, #state, #run))
            }
        };
        tokens.extend(range.call(krate.item(function), passed));
    }
}

impl WorkerCall<'_> {
    /// Returns the function, or a closure that passes clones of the arguments.
    fn on_thread(&self) -> TokenStream {
        let Self { run, context, arguments, range, .. } = self;
        if arguments.is_empty() && context.is_some() {
            return run.clone();
        }
        let cloned = arguments.iter().map(Argument::cloned);
        let passed = context.iter().map(ToTokens::to_token_stream).chain(cloned);
        let ctx = context.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
        let keyword = (!arguments.is_empty()).then(|| quote!(move));
        let head = range.locate(quote!(#keyword |#ctx|));
        let call = range.call(run.clone(), quote!(#(#passed),*));
        quote!(#head #call)
    }

    /// Returns the function, or a closure that passes the inbox to the right parameter.
    fn with_inbox(&self, inbox: &InboxParam) -> TokenStream {
        let Self { run, context, arguments, range, .. } = self;
        if arguments.is_empty() && context.is_some() {
            return run.clone();
        }
        let name = &inbox.name;
        let mut passed: Vec<_> = arguments.iter().map(Argument::cloned).collect();
        passed.insert(inbox.index, quote!(#name));
        let passed = context.iter().map(ToTokens::to_token_stream).chain(passed);
        let passed = quote!(#(#passed),*);
        let ctx = context.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
        let keyword = (!arguments.is_empty()).then(|| quote!(move));
        // Errors about the closure are errors about its captures.
        let range = match &**arguments {
            [only] => SpanRange::of(&only.ty),
            _ => *range,
        };
        let head = range.locate(quote!(#keyword |#ctx, #name|));
        let call = range.call(run.clone(), passed);
        quote!(#head #call)
    }

    /// Returns a closure that passes the services, and everything else, to the right parameters.
    fn with_services(&self) -> TokenStream {
        let Self { krate, run, context, inbox, services, arguments, range, .. } = self;
        let own = Ident::new("__ctx", generated_at(range.first()));
        let ctx = context.as_ref().unwrap_or(&own);
        let mut special: Vec<_> = services
            .iter()
            .map(|ServiceParam { index, value }| {
                let at = SpanRange::of(value);
                let watch = at.locate(krate.item("Context::watch_service"));
                (*index, at.call(quote!(#watch::<#value>), at.locate(quote!(&#ctx))))
            })
            .collect();
        special.extend(inbox.iter().map(|inbox| (inbox.index, inbox.name.to_token_stream())));
        special.sort_by_key(|&(index, _)| index);
        let mut passed: Vec<_> = arguments.iter().map(Argument::cloned).collect();
        for (index, param) in special {
            passed.insert(index, param);
        }
        let first = context.as_ref().map(|ctx| quote!(::core::clone::Clone::clone(&#ctx)));
        let passed = first.into_iter().chain(passed);
        let inbox = inbox.iter().map(|inbox| &inbox.name);
        let keyword = (!arguments.is_empty()).then(|| quote!(move));
        let head = range.locate(quote!(#keyword |#ctx #(, #inbox)*|));
        let call = range.call(run.clone(), quote!(#(#passed),*));
        quote!(#head #call)
    }

    /// Returns all arguments as one tuple.
    fn state(&self) -> Group {
        let values = self.arguments.iter().map(Argument::value);
        group(Delimiter::Parenthesis, quote!(#(#values),*), self.range.first())
    }
}
