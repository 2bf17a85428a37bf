//! An annotated struct: its name, its options, and which of its fields are children.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Field, Fields, Generics, Ident, LitStr, Type, Visibility};

use super::signature::{flatten, is};
use crate::attributes::{allow_added_bounds, allow_deprecated, cfgs};
use crate::errors::Errors;
use crate::keys::Place;
use crate::parse::Args;

/// A supervisor as its struct declares it.
pub(crate) struct Node {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) name: LitStr,
    pub(crate) args: Args,
    pub(crate) children: Vec<ChildField>,
    /// The attributes of the generated `impl` blocks.
    pub(crate) attributes: Vec<Attribute>,
}

/// A field that is a child. The place of its keys is what kind of child it is.
pub(crate) struct ChildField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) name: LitStr,
    pub(crate) args: Args,
    /// The conditions under which the field exists.
    pub(crate) cfgs: Vec<Attribute>,
}

/// Which macro reads the attributes above fields.
///
/// `#[supervisor]` removes the attributes, so a field may have an attribute of the macro's own name.
/// A derive macro leaves them in place, where `#[supervisor]` would be ambiguous.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Attribute,
    Derive,
}

impl Form {
    fn place(self, attribute: &Attribute) -> Option<Place> {
        let ident = attribute.path().get_ident()?;
        match self {
            _ if ident == "child" => Some(Place::Field),
            _ if ident == "dynamic" => Some(Place::Dynamic),
            // For `#[supervisor]`, `tree` and `worker` are mistakes, reported with the right names.
            _ if ident == "tree" => Some(Place::Nested),
            Self::Attribute if ident == "supervisor" => Some(Place::Nested),
            Self::Attribute if ident == "worker" => Some(Place::Field),
            Self::Attribute | Self::Derive => None,
        }
    }

    /// Removes the attributes that belong to the macro.
    fn take(self, attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
        attributes.extract_if(.., |attribute| self.place(attribute).is_some()).collect()
    }
}

impl Node {
    /// Reads an item, and removes the attributes of its fields that belong to the macro.
    ///
    /// `options` are the tokens of `args`, unless the item has them.
    pub(crate) fn of(
        form: Form,
        args: Args,
        options: &TokenStream,
        item: &mut DeriveInput,
        errors: &mut Errors,
    ) -> Self {
        errors.each(
            item.generics.lifetimes().next(),
            "a supervisor can't borrow, because it restarts its children for as long as it \
             runs; let it own the data, or share it in an `Arc`",
        );
        // Keys, wherever they are, may use the data of the struct.
        let expressions = quote!(#options #item);
        let is_struct = check_kind(&item.data, errors);
        let mut children = Vec::new();
        for field in fields(form, &mut item.data) {
            let ours = form.take(&mut field.attrs);
            if is_struct {
                children.extend(child(form, &expressions, field, &ours, errors));
            }
        }
        let attributes = inherited(form, item);
        Self {
            vis: item.vis.clone(),
            ident: item.ident.clone(),
            generics: item.generics.clone(),
            name: args.name_or(&snake_case(&item.ident), item.ident.span()),
            args,
            children,
            attributes,
        }
    }
}

/// Returns whether an item is a struct whose fields can be children, and reports why it isn't.
fn check_kind(data: &Data, errors: &mut Errors) -> bool {
    const NOT_A_STRUCT: &str =
        "a supervisor is a struct, whose fields are its children; write `struct`";
    match data {
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) => errors.at(
                fields,
                "a supervisor's fields need names, because a child is named after its field; \
                 write `{ db: Db }`",
            ),
            Fields::Named(_) | Fields::Unit => return true,
        },
        Data::Enum(data) => errors.at(data.enum_token, NOT_A_STRUCT),
        Data::Union(data) => errors.at(data.union_token, NOT_A_STRUCT),
    }
    false
}

/// Returns all fields of an item.
fn fields(form: Form, data: &mut Data) -> Vec<&mut Field> {
    match data {
        Data::Struct(data) => data.fields.iter_mut().collect(),
        Data::Union(data) => data.fields.named.iter_mut().collect(),
        Data::Enum(data) => {
            let variants = data.variants.iter_mut().flat_map(|variant| {
                form.take(&mut variant.attrs);
                &mut variant.fields
            });
            variants.collect()
        }
    }
}

/// Returns the attributes of the generated `impl` blocks.
fn inherited(form: Form, item: &mut DeriveInput) -> Vec<Attribute> {
    let fields = fields(form, &mut item.data);
    let all = fields.iter().flat_map(|field| &field.attrs).chain(&item.attrs);
    let allowed = allow_deprecated(all).into_iter().chain(allow_added_bounds(&item.generics));
    cfgs(&item.attrs).into_iter().chain(allowed).collect()
}

/// Returns whether `self.field` occurs in these tokens.
fn mention(tokens: &TokenStream, field: &Ident) -> bool {
    let words: Vec<_> = flatten(tokens.clone()).iter().map(ToString::to_string).collect();
    words.windows(3).any(|words| words == ["self", ".", &field.to_string()])
}

/// Returns the child that a field is, if it has one of the macro's attributes.
fn child(
    form: Form,
    expressions: &TokenStream,
    field: &Field,
    ours: &[Attribute],
    errors: &mut Errors,
) -> Option<ChildField> {
    let ident = field.ident.clone()?;
    if let Some(second) = ours.get(1) {
        errors.at(second, format!("`{ident}` can be only one child; remove one of the attributes"));
    } else if form == Form::Attribute {
        for (wrong, right) in [("tree", "supervisor"), ("worker", "child")] {
            errors.each(
                ours.iter().map(Attribute::path).filter(|path| path.is_ident(wrong)),
                format!("above a field of a `#[supervisor]`, write `#[{right}]`"),
            );
        }
    }
    let Some(attribute) = ours.first() else {
        // A spec that no key uses as data would never start.
        if is(&field.ty, "ChildSpec") && !mention(expressions, &ident) {
            let message =
                format!("`{ident}` is a child spec, but no child; write `#[child]` above it");
            errors.at(&ident, message);
        }
        return None;
    };
    let args = Args::of(form.place(attribute)?, attribute, errors);
    let name = args.name_or(&ident.unraw().to_string(), ident.span());
    let cfgs = cfgs(&field.attrs);
    Some(ChildField { ident, ty: field.ty.clone(), name, args, cfgs })
}

/// Returns the name in snake case: `http_api` for `HttpApi`.
fn snake_case(ident: &Ident) -> String {
    let chars: Vec<char> = ident.unraw().to_string().chars().collect();
    let mut snake = String::new();
    for (at, c) in chars.iter().enumerate() {
        let is_after = |is: fn(char) -> bool| at > 0 && is(chars[at - 1]);
        let is_last_capital = is_after(char::is_uppercase)
            && chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        // A word begins at a capital after a small letter, and at the last of several capitals.
        let is_begin =
            is_after(char::is_lowercase) || is_after(char::is_numeric) || is_last_capital;
        if c.is_uppercase() && is_begin {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_named_as_a_field_would_be() {
        let table = [
            ("App", "app"),
            ("HttpApi", "http_api"),
            ("HTTPServer", "http_server"),
            ("V2Reader", "v2_reader"),
            ("Mqtt5", "mqtt5"),
            ("r#Type", "type"),
            ("snake_already", "snake_already"),
        ];
        for (ident, name) in table {
            let ident: Ident = syn::parse_str(ident).unwrap();
            assert_eq!(snake_case(&ident), name);
        }
    }
}
