//! Steps that several parsers share.

use proc_macro2::TokenTree;
use syn::parse::ParseStream;
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Result, Token, bracketed, parenthesized, token};

use crate::errors::fail;

/// Parses an expression, without the invisible groups that other macros put around it.
pub(super) fn expression(input: ParseStream<'_>) -> Result<Expr> {
    let mut expr = input.parse()?;
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    Ok(expr)
}

/// Parses one expression, or several in brackets.
pub(super) fn several(input: ParseStream<'_>) -> Result<Vec<Expr>> {
    if !input.peek(token::Bracket) {
        return Ok(vec![expression(input)?]);
    }
    let list;
    bracketed!(list in input);
    Ok(list.parse_terminated(expression, Token![,])?.into_iter().collect())
}

/// Parses the contents of parentheses, which are consumed even after an error.
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

/// Parses the `=` between a key and its value.
pub(super) fn equals(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<()> {
    if input.parse::<Token![=]>().is_err() || is_over(input) {
        return fail(key, format!("`{key}` needs a value; write `{example}`"));
    }
    Ok(())
}

/// Skips tokens until a condition holds, or to the end.
pub(super) fn skip(input: ParseStream<'_>, until: impl Fn(ParseStream<'_>) -> bool) {
    while !input.is_empty() && !until(input) && input.parse::<TokenTree>().is_ok() {}
}

/// Skips the rest of a value.
pub(super) fn skip_value(input: ParseStream<'_>) {
    skip(input, |input| input.peek(Token![,]));
}

/// Returns whether a value ends here.
pub(super) fn is_over(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Returns the text in quotes that an expression consists of.
pub(super) fn text(expr: &Expr) -> Option<&LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// Returns the word that an expression consists of, unless it names a type or a constant.
pub(super) fn lone_word(expr: &Expr) -> Option<String> {
    let Expr::Path(path) = expr else { return None };
    let word = path.path.get_ident()?.to_string();
    (!word.contains(char::is_uppercase)).then_some(word)
}
