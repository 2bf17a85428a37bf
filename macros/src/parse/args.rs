//! The keys of one attribute: known, allowed where they are written, and set once.
//!
//! A key with a mistake is reported and kept as [`Setting::Invalid`]: the other keys still count, and
//! the key isn't reported as missing.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, LitStr, Meta, Result, Token, parse_quote, token};

use super::backoff::Backoff;
use super::input::{equals, is_over, parentheses, skip, skip_value};
use super::value::Value;
use crate::errors::{Errors, fail};
use crate::hints;
use crate::keys::{self, Key, Place, Takes};
use crate::span::Krate;

/// A key that is written, with its value.
#[derive(Clone)]
pub(crate) struct Arg {
    pub(crate) key: &'static Key,
    /// The key as it is written, which becomes the name of the method.
    pub(crate) ident: Ident,
    pub(crate) value: Value,
}

#[derive(Clone)]
pub(crate) struct Args {
    pub(crate) place: Place,
    args: Vec<Arg>,
}

impl Args {
    pub(crate) fn none(place: Place) -> Self {
        Self { place, args: Vec::new() }
    }

    /// Parses the keys in the parentheses of an attribute macro.
    pub(crate) fn parse(place: Place, tokens: TokenStream, errors: &mut Errors) -> Self {
        let parser = |input: ParseStream<'_>| Ok(Self::read(place, input, errors));
        // `read` reports all errors itself.
        parser.parse2(tokens).unwrap_or_else(|_| Self::none(place))
    }

    /// Parses the keys of a helper attribute, which may have no parentheses.
    pub(crate) fn of(place: Place, attribute: &Attribute, errors: &mut Errors) -> Self {
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => return Self::parse(place, list.tokens.clone(), errors),
            Meta::NameValue(pair) => {
                let (path, example) = (pair.path.to_token_stream(), hints::example(place));
                let message = format!("options stand in parentheses, as in `#[{path}({example})]`");
                errors.at(pair, message);
            }
        }
        Self::none(place)
    }

    pub(super) fn read(place: Place, input: ParseStream<'_>, errors: &mut Errors) -> Self {
        let mut args = Self::none(place);
        let mut misplaced = Vec::new();
        while !input.is_empty() {
            if let Err(error) = args.read_one(input, &mut misplaced, errors) {
                errors.push(error);
                skip_value(input);
            }
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                errors.push(input.error("a comma is missing before this"));
                // Parsing continues at the next token that can be a key.
                skip(input, |input| input.peek(Ident::peek_any) || input.peek(Token![,]));
                let _ = input.parse::<Token![,]>();
            }
        }
        args.report_misplaced(&misplaced, errors);
        args
    }

    fn read_one(
        &mut self,
        input: ParseStream<'_>,
        misplaced: &mut Vec<(Ident, &'static Key)>,
        errors: &mut Errors,
    ) -> Result<()> {
        let ident = self.key(input)?;
        let name = ident.to_string();
        let Some(key) = self.place.key(&name) else {
            if let Some(key) = keys::elsewhere(self.place, &name) {
                misplaced.push((ident, key));
                skip_value(input);
                return Ok(());
            }
            let (message, meant) = hints::unknown(self.place, &name);
            let error = fail(&ident, message);
            self.args.extend(meant.map(|key| Arg { key, ident, value: Value::Invalid }));
            return error;
        };
        let value = value(key, &ident, input, errors).unwrap_or_else(|error| {
            errors.push(error);
            skip_value(input);
            Value::Invalid
        });
        if self.get(key.name).is_none() {
            self.args.push(Arg { key, ident, value });
        } else if !self.is_invalid(key.name) {
            errors.at(&ident, format!("`{ident}` is already set; remove one of the two"));
        }
        Ok(())
    }

    fn key(&self, input: ParseStream<'_>) -> Result<Ident> {
        if input.peek(Ident::peek_any) {
            return Ident::parse_any(input);
        }
        let before = self.args.last().map(|arg| &arg.value);
        let message = match (before, input.fork().parse::<LitStr>()) {
            (Some(Value::Names(names)), Ok(text)) => {
                let names = names.iter().map(LitStr::value).chain([text.value()]);
                let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
                format!("put several names in brackets: `[{}]`", names.join(", "))
            }
            _ => hints::no_name(self.place),
        };
        Err(input.error(message))
    }

    /// Reports neighbouring keys that belong to the same place as one mistake.
    fn report_misplaced(&self, misplaced: &[(Ident, &'static Key)], errors: &mut Errors) {
        let belongs = |key| hints::belongs(self.place, key);
        for together in misplaced.chunk_by(|(_, one), (_, next)| belongs(one) == belongs(next)) {
            let keys: Vec<_> = together.iter().map(|(_, key)| *key).collect();
            errors.at(&together[0].0, hints::misplaced(self.place, &keys));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arg> {
        self.args.iter().find(|arg| arg.key.name == key)
    }

    /// Returns the key as it is written, if it is.
    pub(crate) fn ident(&self, key: &str) -> Option<&Ident> {
        self.get(key).map(|arg| &arg.ident)
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.get(key).map(|arg| &arg.value)
    }

    /// Returns the keys in the parentheses of a key.
    pub(crate) fn group(&self, key: &str) -> Option<&Self> {
        match self.value(key) {
            Some(Value::Group(args)) => Some(args),
            _ => None,
        }
    }

    /// Returns whether the key is set to something invalid.
    pub(crate) fn is_invalid(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Invalid))
    }

    /// Returns whether a key is set to a word, and this is its variant.
    pub(crate) fn is_set_to(&self, key: &str, variant: &str) -> bool {
        matches!(self.value(key), Some(Value::Word(_, word)) if word == variant)
    }

    /// Returns the name that is set, or else `default`.
    pub(crate) fn name_or(&self, default: &str, span: Span) -> LitStr {
        match self.value("name") {
            Some(Value::Name(name)) => name.clone(),
            _ => LitStr::new(default, span),
        }
    }

    pub(crate) fn requires(&self) -> &[LitStr] {
        match self.value("requires") {
            Some(Value::Names(names)) => names,
            _ => &[],
        }
    }

    pub(crate) fn krate(&self) -> Krate {
        match self.value("crate") {
            Some(Value::Path(path)) => Krate(path.clone()),
            _ => Krate(parse_quote!(::verger)),
        }
    }
}

/// Parses what follows a key.
fn value(
    key: &'static Key,
    ident: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> Result<Value> {
    let example = key.example;
    let in_parentheses = input.peek(token::Paren);
    match &key.takes {
        Takes::Flag if is_over(input) => Ok(Value::Flag),
        Takes::Flag => fail(ident, format!("`{ident}` takes no value; write `{ident}` alone")),
        Takes::Group(place) if in_parentheses => {
            parentheses(input, |group| Ok(Value::Group(Args::read(*place, group, errors))))
        }
        Takes::Group(_) => fail(ident, format!("`{ident}` takes options; write `{example}`")),
        Takes::Backoff if in_parentheses => {
            parentheses(input, |group| Backoff::parse(group, ident.span())).map(Value::Backoff)
        }
        takes if in_parentheses => {
            let expression = takes.words().and_then(|words| words.expression);
            let or = expression.map(|expression| format!(", or `{ident} = {expression}`"));
            let or = or.unwrap_or_default();
            fail(ident, format!("`{ident}` takes no parentheses; write `{example}`{or}"))
        }
        _ => {
            equals(ident, example, input)?;
            Value::parse(key, input)
        }
    }
}
