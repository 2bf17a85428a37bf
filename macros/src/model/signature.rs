//! The parameters and types in a signature: by the names of types, as a macro sees no more of them.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    FnArg, GenericArgument, GenericParam, Generics, Ident, Lifetime, Pat, PatIdent, PatType,
    PathArguments, PathSegment, Signature, Type, TypePath,
};

use crate::span::generated_at;

/// What a worker function takes.
pub(crate) struct Params {
    /// The name of the context, which comes first.
    pub(crate) context: Option<Ident>,
    /// Whether that is the context of a run.
    pub(crate) of_run: bool,
    /// The other parameters, in order. Those with a mistake that has no type are left out.
    pub(crate) others: Vec<Param>,
}

/// A parameter besides the context.
pub(crate) enum Param {
    Argument(Argument),
    Inbox(Inbox),
    /// A service, with the type of its value.
    Service(Type),
}

/// A parameter of the constructor, which the function gets a clone of.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

pub(crate) struct Inbox {
    pub(crate) name: Ident,
    /// The type of the messages. `None` if it is missing or invalid, which is reported.
    pub(crate) message: Option<Type>,
}

impl Params {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut params = typed_params(&signature.inputs).peekable();
        let first = params.next_if(|first| is_context(&first.ty) || is_run_context(&first.ty));
        let of_run = first.is_some_and(|first| is_run_context(&first.ty));
        let context = first.map(|first| param_name(first, "__ctx"));
        let mut found = Self { context, of_run, others: Vec::new() };
        // A context in another place is reported.
        for param in params.filter(|param| !is_context(&param.ty)) {
            let param = found.param(param);
            found.others.extend(param);
        }
        found
    }

    fn param(&self, param: &PatType) -> Option<Param> {
        if is_service(&param.ty) {
            return only_argument(&param.ty).cloned().map(Param::Service);
        }
        if is_inbox(&param.ty) {
            let message = only_argument(&param.ty);
            let message = message.filter(|message| undeclared_lifetime(message).is_none());
            let inbox = Inbox { name: param_name(param, "__inbox"), message: message.cloned() };
            return self.inbox().is_none().then_some(Param::Inbox(inbox));
        }
        let name = param_name(param, &format!("argument_{}", self.arguments().count() + 1));
        Some(Param::Argument(Argument { name, ty: (*param.ty).clone() }))
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.others.iter().filter_map(|param| match param {
            Param::Argument(argument) => Some(argument),
            _ => None,
        })
    }

    pub(crate) fn inbox(&self) -> Option<&Inbox> {
        self.others.iter().find_map(|param| match param {
            Param::Inbox(inbox) => Some(inbox),
            _ => None,
        })
    }

    pub(crate) fn has_services(&self) -> bool {
        self.others.iter().any(|param| matches!(param, Param::Service(_)))
    }
}

/// Returns whether a type is named `RunContext`.
pub(crate) fn is_run_context(ty: &Type) -> bool {
    is(ty, "RunContext")
}

/// Returns whether a type is named `Inbox`, or a reference to one.
pub(crate) fn is_inbox(ty: &Type) -> bool {
    is(without_reference(ty), "Inbox")
}

/// Returns whether a type is named `Service`, or a reference to one.
pub(crate) fn is_service(ty: &Type) -> bool {
    is(without_reference(ty), "Service")
}

/// Returns the `M` of an `Inbox<M>`, or the `T` of a `Service<T>`. It has to be a type that can be written twice.
pub(crate) fn only_argument(ty: &Type) -> Option<&Type> {
    let PathArguments::AngleBracketed(of) = &last_segment(without_reference(ty))?.arguments else {
        return None;
    };
    let mut arguments = of.args.iter();
    match (arguments.next(), arguments.next()) {
        (Some(GenericArgument::Type(Type::ImplTrait(_) | Type::Infer(_))), None) => None,
        (Some(GenericArgument::Type(ty)), None) => Some(ty),
        _ => None,
    }
}

/// Returns the parameters besides `self`.
pub(crate) fn typed_params<'a>(
    inputs: impl IntoIterator<Item = &'a FnArg>,
) -> impl Iterator<Item = &'a PatType> {
    inputs.into_iter().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        _ => None,
    })
}

/// Returns the name of a parameter for generated code, which can't be taken for a constant.
///
/// Hygiene keeps it apart from the user's parameter of the same name.
pub(crate) fn param_name(param: &PatType, otherwise: &str) -> Ident {
    match &*param.pat {
        Pat::Ident(PatIdent { ident, .. }) => {
            let mut name = ident.clone();
            name.set_span(generated_at(ident.span()));
            name
        }
        pat => Ident::new(otherwise, generated_at(pat.span())),
    }
}

/// Returns whether a type has this name.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|last| last.ident == name)
}

/// Returns whether a type is a context of an incarnation, or a reference to one. Whether it is the right one is checked
/// elsewhere.
pub(crate) fn is_context(ty: &Type) -> bool {
    let ty = without_reference(ty);
    is(ty, "Context") || is(ty, "BlockingContext")
}

/// Returns the type that a reference refers to, or the type itself.
pub(super) fn without_reference(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => &reference.elem,
        ty => ty,
    }
}

/// Returns the last segment of a type's path.
pub(super) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(TypePath { qself: None, path, .. }) => path.segments.last(),
        // An invisible group of another macro.
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

/// Returns a lifetime that a type has without declaring it, as in `&str` or `Cow<'_, str>`.
pub(crate) fn undeclared_lifetime(ty: &Type) -> Option<TokenStream> {
    struct Undeclared(Option<TokenStream>);

    impl<'ast> Visit<'ast> for Undeclared {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            if reference.lifetime.is_none() {
                let and = reference.and_token;
                self.0.get_or_insert(quote!(#and));
            }
            visit::visit_type_reference(self, reference);
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident == "_" {
                self.0.get_or_insert(quote!(#lifetime));
            }
        }

        // `Fn(&str)` borrows only while it is called.
        fn visit_parenthesized_generic_arguments(
            &mut self,
            _: &'ast syn::ParenthesizedGenericArguments,
        ) {
        }

        fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}
    }

    let mut undeclared = Undeclared(None);
    undeclared.visit_type(ty);
    undeclared.0
}

/// Returns whether a type mentions type parameters or constants of the item that it is part of.
pub(crate) fn is_generic(ty: &Type, generics: &Generics) -> bool {
    names(&ty.to_token_stream(), &|name| inferred(generics).any(|param| param == name))
}

/// Returns the names of the type parameters and of the constants.
pub(crate) fn inferred(generics: &Generics) -> impl Iterator<Item = &Ident> {
    generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    })
}

/// Returns whether an identifier like this occurs in these tokens.
pub(super) fn names(tokens: &TokenStream, is: &dyn Fn(&Ident) -> bool) -> bool {
    flatten(tokens.clone()).iter().any(|token| matches!(token, TokenTree::Ident(name) if is(name)))
}

/// Returns the tokens at any depth, without the delimiters of groups.
pub(super) fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flatten(group.stream()),
        token => vec![token],
    });
    tokens.collect()
}
