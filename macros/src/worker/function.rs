//! An `async fn` becomes a constructor of the same name: what was its arguments besides the
//! [`Context`] and the [`Inbox`] are the constructor's, and are cloned for each incarnation.
//!
//! [`Context`]: super::is_context

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericParam, Ident, ItemFn, LitStr, Pat, PatType, Path, ReturnType,
    Signature, Type, parse_quote,
};

use super::bodies::Bodies;
use super::inbox::{self, Inbox, is_inbox_like};
use super::{
    BORROWS, TWICE, is_context, refuse_qualifiers, remove_qualifiers, typed, undeclared_lifetime,
};
use crate::args::Args;
use crate::attributes::{allow_added_bounds, take_second};
use crate::bounds::{Bounds, require};
use crate::check;
use crate::errors::Errors;
use crate::keys::Place;
use crate::node::is_generic;
use crate::shown::{Shown, at};

pub(crate) fn expand(args: TokenStream, mut function: ItemFn, bodies: Bodies) -> TokenStream {
    let mut errors = Errors::default();
    if let Some(second) = take_second("worker", &mut function.attrs) {
        errors.at(second, TWICE);
    }
    let args = Args::parse(Place::Function, args, &mut errors);
    check::spec(&args, &mut errors);
    check(&function, &mut errors);
    inbox::check(&function.sig, &args, &mut errors);
    if function.sig.receiver().is_some() {
        // There is no constructor that it could become.
        let function = bodies.put_back(function.into_token_stream());
        let errors = errors.into_tokens();
        return quote!(#function #errors);
    }
    if !errors.is_empty() {
        remove_qualifiers(&mut function.sig);
    }
    let constructor = constructor(&args, function, bodies, errors.is_empty());
    let errors = errors.into_tokens();
    quote!(#constructor #errors)
}

/// Refuses functions that can't be workers, at the token that makes them so.
fn check(function: &ItemFn, errors: &mut Errors) {
    let signature = &function.sig;
    if let Some(receiver) = signature.receiver() {
        errors.at(
            receiver,
            "a worker function can't take `self`, because each incarnation begins from nothing; \
             put `#[worker]` on the `impl` block instead",
        );
    }
    if signature.asyncness.is_none() {
        errors.at(
            signature.fn_token,
            "a worker must be an `async fn`, so that it can be asked to stop; write `async fn`",
        );
    }
    refuse_qualifiers(signature, errors);
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        errors.at(lifetime, BORROWS);
    }
    for (index, param) in typed(&signature.inputs).enumerate() {
        match &*param.ty {
            Type::Reference(reference) if is_context(&reference.elem) => {
                errors.at(reference.and_token, "a worker owns its `Context`; remove the `&`");
            }
            Type::Reference(reference) if is_inbox_like(&reference.elem) => {}
            ty if index > 0 && is_context(ty) => {
                errors.at(ty, "`Context` must be the first parameter; move it there");
            }
            ty => {
                if let Some(lifetime) = undeclared_lifetime(ty) {
                    errors.at(lifetime, BORROWS);
                }
            }
        }
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::Never(never) = &**ty
    {
        errors.at(never, "a worker returns nothing or `Exit`; remove `-> !`");
    }
}

/// What the constructor takes: a parameter of the function, under a name of its own.
struct Argument {
    name: Ident,
    ty: Type,
}

fn constructor(args: &Args, mut function: ItemFn, bodies: Bodies, correct: bool) -> TokenStream {
    let krate = &args.krate();
    let (outer, inner) = split(std::mem::take(&mut function.attrs));
    function.attrs = inner;
    let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let bounded = allow_added_bounds(&function.sig.generics);
    require_clones(&mut function.sig);
    let mut signature = function.sig.clone();
    let ident = signature.ident.clone();
    let run = format_ident!("__{}", ident.unraw(), span = at(ident.span()));
    function.sig.ident = run.clone();

    let mut params = typed(&signature.inputs).cloned().peekable();
    let context = params.next_if(|first| is_context_like(&first.ty)).map(|first| context(&first));
    // One that stands elsewhere has been told of.
    let params: Vec<_> = params.filter(|param| !is_context_like(&param.ty)).collect();
    let inbox = Inbox::find(&params);
    let params = params.into_iter().filter(|param| !is_inbox_like(&param.ty));
    let arguments: Vec<_> = params.enumerate().map(argument).collect();
    let own = arguments.iter().map(|Argument { name, ty }| -> FnArg {
        if correct { parse_quote!(#name: #ty) } else { parse_quote!(_: #ty) }
    });
    signature.inputs = own.collect();
    signature.asyncness = None;
    signature.output = match &inbox {
        None => parse_quote!(-> #krate::ChildSpec),
        Some(inbox) => {
            let address = inbox.address(krate, &mut signature.generics);
            parse_quote!(-> (#krate::ChildSpec, #address))
        }
    };
    // Without it, what is wrong with it would be told once more.
    let is_kept = inbox.as_ref().is_none_or(|inbox| inbox.message.is_some());
    let body = if correct {
        let name = args.name().cloned();
        let name = name.unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()));
        let turbofish = turbofish(&function);
        let shown = match &function.sig.output {
            ReturnType::Default => Shown::at(&ident),
            ReturnType::Type(_, ty) => Shown::at(ty),
        };
        let made = inbox.as_ref().map(|inbox| inbox.made(args, krate));
        let run = quote!(#run #turbofish);
        let call = Call { krate, name, run, context, inbox, arguments, shown };
        let options = args.calls(krate);
        match made {
            None => quote!(#call #options),
            Some(made) => quote!(#made let __spec = #call #options; (__spec, __address)),
        }
    } else {
        quote!(loop {})
    };
    let span = function.block.brace_token.span.join();
    let function = is_kept.then(|| {
        let function = bodies.put_back(function.into_token_stream());
        quote! {
            #[allow(clippy::unused_async, reason = "a worker has to be an `async fn`")]
            #function
        }
    });
    let body = quote!(#function #body);
    // It ends where the function does, so that it counts as written by somebody, and the compiler
    // tells of a worker that nobody uses.
    let mut body = Group::new(Delimiter::Brace, body);
    body.set_span(span);
    quote! {
        #(#outer)*
        #bounded
        #vis #signature #body
    }
}

/// Also a context that was taken the wrong way, which has been told.
fn is_context_like(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_context(&reference.elem),
        ty => is_context(ty),
    }
}

/// What documents a function or decides about its being there concerns the constructor; how it is
/// linted concerns both, one within the other. What changes how it runs concerns the function.
fn split(attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    const OUTER: [&str; 9] =
        ["doc", "cfg", "deprecated", "must_use", "allow", "expect", "warn", "deny", "forbid"];
    let is_outer = |attribute: &Attribute| OUTER.iter().any(|name| attribute.path().is_ident(name));
    attributes.into_iter().partition(is_outer)
}

/// What the context is called: like the function's parameter, which can't be taken for a constant.
fn context(param: &PatType) -> Ident {
    let mut name = match &*param.pat {
        Pat::Ident(pat) => pat.ident.clone(),
        _ => Ident::new("__ctx", Span::call_site()),
    };
    name.set_span(at(name.span()));
    name
}

fn argument((index, param): (usize, PatType)) -> Argument {
    let mut name = match &*param.pat {
        Pat::Ident(pat) => pat.ident.clone(),
        pat => Ident::new(&format!("argument_{}", index + 1), pat.span()),
    };
    // Not the function's parameter, but one of the same name.
    name.set_span(at(name.span()));
    Argument { name, ty: *param.ty }
}

/// Requires of arguments whose types are open what a restart needs.
fn require_clones(signature: &mut Signature) {
    let bounds: Bounds =
        parse_quote!(::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static);
    for param in signature.inputs.iter_mut() {
        let FnArg::Typed(PatType { ty, .. }) = param else { continue };
        if is_inbox_like(ty) {
            inbox::require_send(ty, &mut signature.generics);
        } else if let Type::ImplTrait(anonymous) = &mut **ty {
            // A type without a name can't be bounded elsewhere.
            anonymous.bounds.extend(bounds.clone());
        } else if is_generic(ty, &signature.generics) {
            require(&mut signature.generics, ty, bounds.clone());
        }
    }
}

/// What the compiler couldn't infer, and can't be told where there are types without names.
fn turbofish(function: &ItemFn) -> TokenStream {
    let params: Vec<_> = function
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if params.is_empty() { TokenStream::new() } else { quote!(::<#(#params),*>) }
}

/// The call of `worker`, `worker_with` or `worker_with_mailbox`.
struct Call<'a> {
    krate: &'a Path,
    name: LitStr,
    run: TokenStream,
    /// Its name, if the function takes one.
    context: Option<Ident>,
    inbox: Option<Inbox>,
    arguments: Vec<Argument>,
    /// What is wrong with what is run is wrong with what the function returns.
    shown: Shown,
}

impl ToTokens for Call<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { krate, name, run, context, inbox, arguments, shown } = self;
        if let Some(inbox) = inbox {
            let run = self.with_inbox(inbox);
            let arguments = quote!(#name, __mailbox, #run);
            tokens.extend(shown.call(quote!(#krate::worker_with_mailbox), arguments));
            return;
        }
        let names: Vec<_> = arguments.iter().map(|argument| &argument.name).collect();
        let worker = match (&*names, context) {
            ([], Some(_)) => shown.call(quote!(#krate::worker), quote!(#name, #run)),
            ([], None) => shown.call(quote!(#krate::worker), quote!(#name, |_| #run())),
            ([one], context) => {
                let state = arguments[0].shown();
                let run = match context {
                    Some(_) => run.clone(),
                    None => quote!(|_, #one| #run(#one)),
                };
                shown.call(quote!(#krate::worker_with), quote!(#name, #state, #run))
            }
            (names, context) => {
                let state = self.state();
                let run = match context {
                    Some(ctx) => quote!(|#ctx, (#(#names),*)| #run(#ctx, #(#names),*)),
                    None => quote!(|_, (#(#names),*)| #run(#(#names),*)),
                };
                shown.call(quote!(#krate::worker_with), quote!(#name, #state, #run))
            }
        };
        tokens.extend(worker);
    }
}

impl Call<'_> {
    /// The function, or what calls it with the inbox where it takes that.
    fn with_inbox(&self, inbox: &Inbox) -> TokenStream {
        let Self { run, context, arguments, shown, .. } = self;
        if arguments.is_empty() && context.is_some() {
            return run.clone();
        }
        let name = &inbox.name;
        let mut passed: Vec<_> = arguments.iter().map(Argument::cloned).collect();
        passed.insert(inbox.at, quote!(#name));
        let passed = context.iter().map(ToTokens::to_token_stream).chain(passed);
        let passed = quote!(#(#passed),*);
        let ctx = context.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
        let keyword = (!arguments.is_empty()).then(|| quote!(move));
        // What is wrong with the closure is wrong with what it captures.
        let shown = match &**arguments {
            [only] => Shown::at(&only.ty),
            _ => *shown,
        };
        let head = shown.all(quote!(#keyword |#ctx, #name|));
        let call = shown.call(run.clone(), passed);
        quote!(#head #call)
    }

    /// All arguments as one value.
    fn state(&self) -> Group {
        let values = self.arguments.iter().map(Argument::shown);
        let mut tuple = Group::new(Delimiter::Parenthesis, quote!(#(#values),*));
        tuple.set_span(self.shown.first());
        tuple
    }
}

impl Argument {
    /// Its value, of which the compiler speaks at its type.
    fn shown(&self) -> Ident {
        let mut name = self.name.clone();
        name.set_span(at(self.ty.span()));
        name
    }
    /// A clone of it, for one incarnation.
    fn cloned(&self) -> TokenStream {
        let name = &self.name;
        let shown = Shown::at(&self.ty);
        let borrowed = shown.all(quote!(&#name));
        shown.call(quote!(::core::clone::Clone::clone), borrowed)
    }
}
