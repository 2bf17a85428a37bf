//! The errors of one expansion, collected so that each mistake is reported once.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Error, Result};

/// Fails with an error that underlines these tokens.
pub(crate) fn fail<T>(tokens: impl ToTokens, message: impl Display) -> Result<T> {
    Err(Error::new_spanned(tokens, message))
}

/// The errors of one expansion. As tokens they are one `compile_error!` each.
#[derive(Debug, Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds an error that underlines these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// Adds an error at each of these, of which there may be none.
    pub(crate) fn each<T: ToTokens>(
        &mut self,
        tokens: impl IntoIterator<Item = T>,
        message: impl Display,
    ) {
        tokens.into_iter().for_each(|tokens| self.at(tokens, &message));
    }

    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

impl ToTokens for Errors {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.as_ref().map(Error::to_compile_error));
    }
}
