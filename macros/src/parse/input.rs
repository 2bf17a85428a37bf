//! Steps that several parsers share.

use proc_macro2::TokenTree;
use syn::parse::ParseStream;
use syn::{Expr, Result, Token, bracketed, parenthesized, token};

/// Parses an expression, without the invisible groups that other macros put around it.
pub(super) fn expression(input: ParseStream<'_>) -> Result<Expr> {
    let mut expr = input.parse()?;
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    Ok(expr)
}

/// Parses one item, or several in brackets.
pub(super) fn several<T>(
    input: ParseStream<'_>,
    one: impl Fn(ParseStream<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !input.peek(token::Bracket) {
        return one(input).map(|one| vec![one]);
    }
    let list;
    bracketed!(list in input);
    let mut several = Vec::new();
    while !list.is_empty() {
        several.push(one(&list)?);
        if !list.is_empty() {
            list.parse::<Token![,]>()?;
        }
    }
    Ok(several)
}

/// Parses the contents of parentheses, which are consumed also after an error.
pub(super) fn parentheses<T>(
    input: ParseStream<'_>,
    parse: impl FnOnce(ParseStream<'_>) -> Result<T>,
) -> Result<T> {
    let group;
    parenthesized!(group in input);
    let parsed = parse(&group);
    skip(&group, |_| false);
    parsed
}

/// Skips tokens until a condition holds, or to the end.
pub(super) fn skip(input: ParseStream<'_>, until: impl Fn(ParseStream<'_>) -> bool) {
    while !input.is_empty() && !until(input) && input.parse::<TokenTree>().is_ok() {}
}

/// Returns whether a value ends here.
pub(super) fn is_over(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Returns the word that an expression consists of, unless it names a type or a constant.
pub(super) fn lone_word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => {
            let word = path.path.get_ident()?.to_string();
            (!word.contains(char::is_uppercase)).then_some(word)
        }
        _ => None,
    }
}
