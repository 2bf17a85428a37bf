//! A worker with a mailbox: one parameter of its function is an `Inbox<M>`, by name, and its
//! constructor returns the address as well.
//!
//! Which types are inboxes, what `capacity` and `mailbox` say of the mailbox, and how it is made.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::{
    Expr, ExprClosure, GenericArgument, Generics, Pat, PatType, Path, PathArguments, Signature,
    Type, TypeImplTrait, TypeInfer, parse_quote,
};

use super::{last_segment, typed, undeclared_lifetime};
use crate::args::Args;
use crate::bounds::require;
use crate::errors::Errors;
use crate::node::is_generic;
use crate::shown::{Shown, at, repeated};
use crate::value::Value;

/// The keys that say something of a mailbox.
const KEYS: [&str; 2] = ["capacity", "mailbox"];

const EXAMPLE: &str = "mailbox = |it| it.max_attempts(3)";

/// As many messages wait as the library suggests, unless something is said.
const CAPACITY: usize = 1000;

/// Whether it is, by name, what a child reads its messages from; also taken the wrong way.
pub(super) fn is_inbox_like(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_inbox_like(&reference.elem),
        ty => last_segment(ty).is_some_and(|last| last.ident == "Inbox"),
    }
}

/// The inbox that a function takes.
pub(super) struct Inbox {
    /// What it is called: like the function's parameter.
    pub(super) name: Ident,
    /// Its place among the parameters besides the context.
    pub(super) at: usize,
    /// What its messages are. `None` if that is not said, or can't be, which has been told.
    pub(super) message: Option<Type>,
}

impl Inbox {
    /// The first one of these parameters.
    pub(super) fn find<'a>(params: impl IntoIterator<Item = &'a PatType>) -> Option<Self> {
        let mut params = params.into_iter().enumerate();
        let (at, param) = params.find(|(_, param)| is_inbox_like(&param.ty))?;
        let message = message(&param.ty).ok();
        // One that borrows has been told of.
        let message = message.filter(|message| undeclared_lifetime(message).is_none());
        Some(Self { name: name(param), at, message })
    }

    /// The type of the address. Where nobody knows what the messages are, they are what it is used
    /// for.
    pub(super) fn address(&self, krate: &Path, generics: &mut Generics) -> TokenStream {
        if let Some(message) = &self.message {
            let message = repeated(message);
            return quote!(#krate::Address<#message>);
        }
        generics.params.push(parse_quote!(__M));
        quote!(#krate::Address<__M>)
    }

    /// The mailbox that it is the end of, and its address, as `__mailbox` and `__address`.
    pub(super) fn made(&self, args: &Args, krate: &Path) -> TokenStream {
        let Some(ty) = &self.message else { return TokenStream::new() };
        let message = repeated(ty);
        let capacity = match args.value("capacity") {
            Some(capacity) => capacity.tokens(krate),
            None => Literal::usize_unsuffixed(CAPACITY).into_token_stream(),
        };
        let function = Shown::at(ty).all(quote!(#krate::mailbox));
        let made = quote!(let (__address, __mailbox) = #function::<#message>(#capacity););
        let Some(Value::Expression(told)) = args.value("mailbox") else { return made };
        let shown = Shown::at(told);
        let mailbox = quote!(#krate::Mailbox<#message>);
        let function = match told {
            Expr::Path(path) => path.to_token_stream(),
            Expr::Closure(closure) => in_parentheses(shown, with_type(closure, &mailbox)),
            other => in_parentheses(shown, other),
        };
        let arguments = shown.call(TokenStream::new(), shown.all(quote!(__mailbox)));
        quote! {
            #made
            let __mailbox: #mailbox = #function #arguments;
        }
    }
}

/// An expression that is called where it stands.
fn in_parentheses(shown: Shown, function: impl ToTokens) -> TokenStream {
    let mut group = Group::new(Delimiter::Parenthesis, function.into_token_stream());
    group.set_span(shown.first());
    group.into_token_stream()
}

/// A closure that is called where it stands has to say what it takes.
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

fn name(param: &PatType) -> Ident {
    let mut name = match &*param.pat {
        Pat::Ident(pat) => pat.ident.clone(),
        _ => Ident::new("__inbox", Span::call_site()),
    };
    name.set_span(at(name.span()));
    name
}

/// Why nobody knows what the messages are.
enum Unknown {
    Unsaid,
    /// By an `impl Trait`, which the address can't have in its type.
    Anonymous(TokenStream),
}

fn message(ty: &Type) -> Result<Type, Unknown> {
    let ty = match ty {
        Type::Reference(reference) => return message(&reference.elem),
        ty => ty,
    };
    let Some(PathArguments::AngleBracketed(arguments)) = last_segment(ty).map(|it| &it.arguments)
    else {
        return Err(Unknown::Unsaid);
    };
    let mut arguments = arguments.args.iter();
    match (arguments.next(), arguments.next()) {
        (Some(GenericArgument::Type(message)), None) => named(message).map(|()| message.clone()),
        _ => Err(Unknown::Unsaid),
    }
}

/// Whether a type can be written once more.
fn named(message: &Type) -> Result<(), Unknown> {
    struct Names(Result<(), Unknown>);

    impl<'ast> Visit<'ast> for Names {
        fn visit_type_impl_trait(&mut self, anonymous: &'ast TypeImplTrait) {
            self.0 = Err(Unknown::Anonymous(quote!(#anonymous)));
        }

        fn visit_type_infer(&mut self, _: &'ast TypeInfer) {
            self.0 = Err(Unknown::Unsaid);
        }
    }

    let mut names = Names(Ok(()));
    names.visit_type(message);
    names.0
}

/// Requires of messages whose type is open what a mailbox needs.
pub(super) fn require_send(ty: &Type, generics: &mut Generics) {
    if let Ok(message) = message(ty)
        && is_generic(&message, generics)
    {
        require(generics, &message, parse_quote!(::core::marker::Send + 'static));
    }
}

/// Refuses inboxes that there can't be, and keys about one that isn't there.
pub(super) fn check(signature: &Signature, args: &Args, errors: &mut Errors) {
    let mut inboxes = typed(&signature.inputs).filter(|param| is_inbox_like(&param.ty));
    let Some(first) = inboxes.next() else { return no_mailbox(signature, args, errors) };
    one(&first.ty, errors);
    for second in inboxes {
        errors.at(
            second,
            "a worker has one mailbox; put both kinds of messages into one `enum`, and remove this",
        );
    }
    if let Some(Value::Expression(Expr::Closure(closure))) = args.value("mailbox")
        && closure.inputs.len() != 1
    {
        let message = format!("this is given the mailbox, and returns it; write `{EXAMPLE}`");
        errors.at(closure, message);
    }
}

/// One mistake for all keys, since it is mended once.
fn no_mailbox(signature: &Signature, args: &Args, errors: &mut Errors) {
    if let Some(arg) = args.iter().find(|arg| KEYS.contains(&arg.key.name)) {
        let function = &signature.ident;
        let message = format!(
            "`{function}` has no mailbox: add a parameter `inbox: Inbox<M>`, where `M` is what its messages are"
        );
        errors.at(&arg.ident, message);
    }
}

fn one(ty: &Type, errors: &mut Errors) {
    if let Type::Reference(reference) = ty {
        let (and, mutability) = (&reference.and_token, &reference.mutability);
        let borrow = if mutability.is_some() { "&mut" } else { "&" };
        errors.at(
            quote!(#and #mutability),
            format!("a worker owns its `Inbox`; remove the `{borrow}`"),
        );
    }
    match message(ty) {
        Ok(_) => {}
        Err(Unknown::Unsaid) => {
            errors.at(ty, "say what the messages are, as in `Inbox<String>`");
        }
        Err(Unknown::Anonymous(anonymous)) => errors.at(
            anonymous,
            "the address that is returned needs a name for the messages; write a type parameter, \
             as in `fn relay<M: Send>(inbox: Inbox<M>)`",
        ),
    }
}
