//! The keys of one attribute, as they were written: known, allowed where they stand, and set once.
//!
//! A key with a mistake in it is told of and marked, so that the others still count, and nobody is
//! told that it is missing.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Ident, LitStr, Meta, Path, Result, Token, token};

use crate::advice;
use crate::backoff::Backoff;
use crate::errors::Errors;
use crate::keys::{self, Found, Key, Place, Takes};
use crate::settings::{parentheses, skip};
use crate::value::Value;
use crate::{failure_log, limits};

/// A key that was written, with what stands behind it.
pub(crate) struct Arg {
    pub(crate) key: &'static Key,
    /// The key as it was written, which becomes the method that is called.
    pub(crate) ident: Ident,
    pub(crate) set: Set,
}

pub(crate) enum Set {
    Flag,
    Value(Value),
    Group(Args),
    /// Something that is a mistake, which was told.
    Wrong,
}

pub(crate) struct Args {
    place: Place,
    args: Vec<Arg>,
}

impl Args {
    /// The keys in the parentheses of an attribute macro.
    pub(crate) fn parse(place: Place, tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::none(place);
        let parser = |input: ParseStream<'_>| {
            args.read(input, errors);
            Ok(())
        };
        // It fails for nothing that `read` has not told.
        let _ = parser.parse2(tokens);
        args
    }

    fn none(place: Place) -> Self {
        Self { place, args: Vec::new() }
    }

    /// The keys of a helper attribute, which may have no parentheses.
    pub(crate) fn of(place: Place, attribute: &Attribute, errors: &mut Errors) -> Self {
        match &attribute.meta {
            Meta::Path(_) => Self::none(place),
            Meta::List(list) => Self::parse(place, list.tokens.clone(), errors),
            Meta::NameValue(pair) => {
                errors.at(
                    pair,
                    format!(
                        "options stand in parentheses, as in `#[{}({})]`",
                        pair.path.to_token_stream(),
                        advice::example(place),
                    ),
                );
                Self::none(place)
            }
        }
    }

    fn read(&mut self, input: ParseStream<'_>, errors: &mut Errors) {
        let mut misplaced = Vec::new();
        while !input.is_empty() {
            if let Err(error) = self.read_one(input, &mut misplaced, errors) {
                errors.push(error);
                skip(input, |input| input.peek(Token![,]));
            }
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                errors.push(input.error("a comma is missing before this"));
                // Unless it can be the next key, nobody knows what it is.
                skip(input, |input| input.peek(Ident::peek_any) || input.peek(Token![,]));
                let _ = input.parse::<Token![,]>();
            }
        }
        self.tell_misplaced(&misplaced, errors);
    }

    fn read_one(
        &mut self,
        input: ParseStream<'_>,
        misplaced: &mut Vec<(Ident, &'static Key)>,
        errors: &mut Errors,
    ) -> Result<()> {
        let ident = self.key(input)?;
        let key = match keys::find(self.place, &ident.to_string()) {
            Found::Here(key) => key,
            Found::Elsewhere(key) => {
                misplaced.push((ident, key));
                skip(input, |input| input.peek(Token![,]));
                return Ok(());
            }
            Found::Nowhere => {
                let (message, meant) = advice::unknown(self.place, &ident.to_string());
                let error = Error::new(ident.span(), message);
                self.args.extend(meant.map(|key| Arg { key, ident, set: Set::Wrong }));
                return Err(error);
            }
        };
        let before = self.get(key.name).map(|arg| !matches!(arg.set, Set::Wrong));
        let set = self.set(key, &ident, input, errors).unwrap_or_else(|error| {
            errors.push(error);
            skip(input, |input| input.peek(Token![,]));
            Set::Wrong
        });
        match before {
            None => self.args.push(Arg { key, ident, set }),
            Some(true) => {
                errors.at(&ident, format!("`{ident}` is already set; remove one of the two"));
            }
            // What it is was told.
            Some(false) => {}
        }
        Ok(())
    }

    fn key(&self, input: ParseStream<'_>) -> Result<Ident> {
        if input.peek(Ident::peek_any) {
            return Ident::parse_any(input);
        }
        let message = match input.fork().parse::<LitStr>() {
            Ok(text) => match self.args.last().map(|arg| &arg.set) {
                Some(Set::Value(Value::Names(names))) => {
                    let names = names.iter().map(LitStr::value).chain([text.value()]);
                    let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
                    format!("put several names in brackets: `[{}]`", names.join(", "))
                }
                _ => advice::quoted(self.place, &text.value()),
            },
            Err(_) => advice::no_name(self.place),
        };
        Err(input.error(message))
    }

    fn set(
        &self,
        key: &'static Key,
        ident: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> Result<Set> {
        let wrong = |text: String| Err(Error::new(ident.span(), text));
        let is_over = |input: ParseStream<'_>| input.is_empty() || input.peek(Token![,]);
        match &key.takes {
            Takes::Flag if is_over(input) => Ok(Set::Flag),
            Takes::Flag => wrong(format!("`{ident}` takes no value; write `{ident}` alone")),
            Takes::Group(place) if input.peek(token::Paren) => parentheses(input, |group| {
                let mut args = Self::none(*place);
                args.read(group, errors);
                Ok(Set::Group(args))
            }),
            Takes::Backoff if input.peek(token::Paren) => {
                let backoff = parentheses(input, |group| Backoff::parse(group, ident.span()))?;
                Ok(Set::Value(Value::Backoff(backoff)))
            }
            Takes::Intensity if input.peek(token::Paren) => {
                let parse =
                    |group: ParseStream<'_>| limits::intensity(group, ident.span(), key.example);
                parentheses(input, parse).map(Set::Value)
            }
            Takes::OnExhausted if input.peek(token::Paren) => {
                parentheses(input, |group| limits::on_exhausted(group, ident.span()))
                    .map(Set::Value)
            }
            Takes::FailureLog if input.peek(token::Paren) => {
                parentheses(input, |group| failure_log::in_parentheses(group, ident.span()))
                    .map(Set::Value)
            }
            Takes::Group(_) => wrong(format!("`{ident}` takes options; write `{}`", key.example)),
            _ => {
                if input.parse::<Token![=]>().is_err() || is_over(input) {
                    return wrong(format!("`{ident}` needs a value; write `{}`", key.example));
                }
                Value::parse(key, input).map(Set::Value)
            }
        }
    }

    /// One mistake for all that belong to the same place, since they were probably meant together.
    fn tell_misplaced(&self, misplaced: &[(Ident, &'static Key)], errors: &mut Errors) {
        let belongs = |key| advice::belongs(self.place, key);
        for together in misplaced.chunk_by(|(_, one), (_, next)| belongs(one) == belongs(next)) {
            let keys: Vec<_> = together.iter().map(|(_, key)| *key).collect();
            errors.at(&together[0].0, advice::misplaced(self.place, &keys));
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arg> {
        self.args.iter().find(|arg| arg.key.name == key)
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        match &self.get(key)?.set {
            Set::Value(value) => Some(value),
            Set::Flag | Set::Group(_) | Set::Wrong => None,
        }
    }

    /// The keys in the parentheses of a key.
    pub(crate) fn group(&self, key: &str) -> Option<&Self> {
        match &self.get(key)?.set {
            Set::Group(args) => Some(args),
            Set::Flag | Set::Value(_) | Set::Wrong => None,
        }
    }

    /// Whether the key is set to something that is a mistake.
    pub(crate) fn is_wrong(&self, key: &str) -> bool {
        self.get(key).is_some_and(|arg| matches!(arg.set, Set::Wrong))
    }

    /// The variant that a word stands for, if the key is set to a word.
    pub(crate) fn word(&self, key: &str) -> Option<&'static str> {
        match self.value(key)? {
            Value::Word { variant, .. } => Some(variant),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter()
    }

    pub(crate) fn name(&self) -> Option<&LitStr> {
        match self.value("name")? {
            Value::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn requires(&self) -> &[LitStr] {
        match self.value("requires") {
            Some(Value::Names(names)) => names,
            _ => &[],
        }
    }

    /// The crate that everything is taken from.
    pub(crate) fn krate(&self) -> Path {
        match self.value("crate") {
            Some(Value::Path(path)) => path.clone(),
            _ => syn::parse_quote!(::verger),
        }
    }

    /// The calls on a builder or a spec that these keys are.
    pub(crate) fn calls(&self, krate: &Path) -> TokenStream {
        self.args.iter().map(|arg| self.call(arg, krate)).collect()
    }

    /// The calls on a builder, and those on the spec that it becomes.
    pub(crate) fn split_calls(&self, krate: &Path) -> (TokenStream, TokenStream) {
        let calls = |of_child| -> TokenStream {
            let args = self.args.iter().filter(move |arg| arg.key.is_of_child() == of_child);
            args.map(|arg| self.call(arg, krate)).collect()
        };
        let itself = self.group("child").map(|itself| itself.calls(krate));
        let mut of_child = calls(true);
        of_child.extend(itself);
        (calls(false), of_child)
    }

    fn call(&self, arg: &Arg, krate: &Path) -> TokenStream {
        let ident = &arg.ident;
        match (&arg.set, arg.key.name) {
            (Set::Flag, _) => quote!(.#ident()),
            (Set::Group(args), "defaults") => {
                let calls = args.calls(krate);
                quote!(.#ident(|__child| __child #calls))
            }
            // Not calls: what the constructor gets, where all names are from, half of a pair, what
            // is said of the spec that the builder becomes, and of a mailbox.
            (_, "name" | "crate" | "period" | "child" | "capacity" | "mailbox")
            | (Set::Group(_) | Set::Wrong, _) => TokenStream::new(),
            (Set::Value(Value::Names(names)), _) => {
                names.iter().map(|name| quote!(.#ident(#name))).collect()
            }
            (Set::Value(Value::Functions(functions)), _) => {
                functions.iter().map(|function| quote!(.#ident(#function))).collect()
            }
            (Set::Value(value), "max_restarts") => {
                let max = value.tokens(krate);
                let period = self.value("period").map(|period| period.tokens(krate));
                let restarts = Ident::new("restarts", ident.span());
                quote!(.#restarts(#max, #period))
            }
            (Set::Value(value), "backoff") if self.place == Place::Supervisor => {
                let value = value.tokens(krate);
                quote!(.defaults(|__child| __child.#ident(#value)))
            }
            (Set::Value(value), _) => {
                let value = value.tokens(krate);
                quote!(.#ident(#value))
            }
        }
    }
}
