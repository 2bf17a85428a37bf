//! An annotated struct, taken apart: what it is called, and which of its fields are children.

use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DeriveInput, Field, Fields, GenericParam, Generics, Ident, LitStr, Type,
    Visibility,
};

use crate::args::Args;
use crate::attributes::{allow_added_bounds, allow_deprecated, cfgs};
use crate::errors::Errors;
use crate::keys::Place;

/// A supervisor, as its struct declares it.
pub(crate) struct Node {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) name: LitStr,
    pub(crate) args: Args,
    pub(crate) children: Vec<ChildField>,
    /// What the generated code takes over from the struct.
    pub(crate) attributes: Vec<Attribute>,
}

/// A field that is a child.
pub(crate) struct ChildField {
    pub(crate) kind: Kind,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) name: LitStr,
    pub(crate) args: Args,
    /// What decides whether the field is there.
    pub(crate) cfgs: Vec<Attribute>,
}

impl ChildField {
    /// Whether it may be that there are never both of them.
    pub(crate) fn may_exclude(&self, other: &Self) -> bool {
        !self.cfgs.is_empty() || !other.cfgs.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A prototype or a spec.
    Child,
    /// Another node, or a builder.
    Supervisor,
    /// A dynamic supervisor, of which the attribute says everything.
    Dynamic,
}

/// What the attributes above fields are called. An attribute macro removes them, so one of them may
/// have its own name; a derive macro can't, so it may not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Attribute,
    Derive,
}

impl Form {
    fn kind(self, attribute: &Attribute) -> Option<Kind> {
        let ident = attribute.path().get_ident()?;
        match self {
            _ if ident == "child" => Some(Kind::Child),
            _ if ident == "dynamic" => Some(Kind::Dynamic),
            Self::Attribute if ident == "supervisor" => Some(Kind::Supervisor),
            // What is meant is clear, and what to write instead is told.
            Self::Attribute if ident == "tree" => Some(Kind::Supervisor),
            Self::Attribute if ident == "worker" => Some(Kind::Child),
            Self::Derive if ident == "tree" => Some(Kind::Supervisor),
            Self::Attribute | Self::Derive => None,
        }
    }

    /// Removes the attributes that are ours.
    fn take(self, attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
        attributes.extract_if(.., |attribute| self.kind(attribute).is_some()).collect()
    }
}

impl Node {
    /// Takes an item apart, and removes the attributes of its fields that are ours.
    pub(crate) fn of(form: Form, args: Args, item: &mut DeriveInput, errors: &mut Errors) -> Self {
        if let Some(lifetime) = item.generics.lifetimes().next() {
            errors.at(
                lifetime,
                "a supervisor can't borrow, because it starts its children again for as long as \
                 it runs; let it own the data, or share it in an `Arc`",
            );
        }
        let children = match &mut item.data {
            Data::Struct(data) => children(form, &mut data.fields, errors),
            Data::Enum(data) => {
                errors.at(data.enum_token, NOT_A_STRUCT);
                for variant in &mut data.variants {
                    form.take(&mut variant.attrs);
                    forget(form, &mut variant.fields);
                }
                Vec::new()
            }
            Data::Union(data) => {
                errors.at(data.union_token, NOT_A_STRUCT);
                for field in &mut data.fields.named {
                    form.take(&mut field.attrs);
                }
                Vec::new()
            }
        };
        let name = args.name().cloned();
        let name = name.unwrap_or_else(|| LitStr::new(&snake_case(&item.ident), item.ident.span()));
        Self {
            vis: item.vis.clone(),
            ident: item.ident.clone(),
            generics: item.generics.clone(),
            name,
            args,
            children,
            attributes: inherited(item),
        }
    }
}

const NOT_A_STRUCT: &str =
    "a supervisor is a struct, whose fields are its children; write `struct`";

/// What the generated code has to know: what isn't there, is deprecated, or has bounds.
fn inherited(item: &DeriveInput) -> Vec<Attribute> {
    let fields = match &item.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(_) | Data::Union(_) => Vec::new(),
    };
    let all = fields.iter().flat_map(|field| &field.attrs).chain(&item.attrs);
    let allowed = allow_deprecated(all).into_iter().chain(allow_added_bounds(&item.generics));
    cfgs(&item.attrs).into_iter().chain(allowed).collect()
}

fn children(form: Form, fields: &mut Fields, errors: &mut Errors) -> Vec<ChildField> {
    match fields {
        Fields::Named(fields) => {
            fields.named.iter_mut().filter_map(|field| child(form, field, errors)).collect()
        }
        Fields::Unnamed(_) => {
            errors.at(
                &*fields,
                "a supervisor's fields need names, because a child is called like its field; \
                 write `{ db: Db }`",
            );
            forget(form, fields);
            Vec::new()
        }
        Fields::Unit => Vec::new(),
    }
}

fn forget(form: Form, fields: &mut Fields) {
    for field in fields {
        form.take(&mut field.attrs);
    }
}

fn child(form: Form, field: &mut Field, errors: &mut Errors) -> Option<ChildField> {
    let ident = field.ident.clone()?;
    let ours = form.take(&mut field.attrs);
    if let Some(second) = ours.get(1) {
        errors.at(second, format!("`{ident}` can be only one child; remove one of the attributes"));
    } else if form == Form::Attribute {
        for (wrong, right) in [("tree", "supervisor"), ("worker", "child")] {
            for attribute in ours.iter().filter(|attribute| attribute.path().is_ident(wrong)) {
                let message = format!("above a field of a `#[supervisor]`, write `#[{right}]`");
                errors.at(attribute.path(), message);
            }
        }
    }
    let attribute = ours.first()?;
    let kind = form.kind(attribute)?;
    let place = if kind == Kind::Dynamic { Place::Dynamic } else { Place::Field };
    let args = Args::of(place, attribute, errors);
    let name = args.name().cloned();
    let name = name.unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()));
    let cfgs = cfgs(&field.attrs);
    Some(ChildField { kind, ident, ty: field.ty.clone(), name, args, cfgs })
}

/// `HttpApi` is `http_api`.
pub(crate) fn snake_case(ident: &Ident) -> String {
    let ident = ident.unraw().to_string();
    let mut snake = String::new();
    let mut chars = ident.chars().peekable();
    let mut before = None::<char>;
    while let Some(c) = chars.next() {
        // A word begins where small letters end, and at the last of several capitals.
        let after_small = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
        let before_small = before.is_some_and(char::is_uppercase)
            && chars.peek().is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_small || before_small) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        before = Some(c);
    }
    snake
}

/// Whether a type depends on type parameters or constants of the item that it stands in.
pub(crate) fn is_generic(ty: &Type, generics: &Generics) -> bool {
    struct Mentions<'a>(&'a Generics, bool);

    impl<'ast> syn::visit::Visit<'ast> for Mentions<'_> {
        fn visit_ident(&mut self, ident: &'ast Ident) {
            self.1 |= self.0.params.iter().any(|param| match param {
                GenericParam::Type(param) => param.ident == *ident,
                GenericParam::Const(param) => param.ident == *ident,
                GenericParam::Lifetime(_) => false,
            });
        }
    }

    let mut mentions = Mentions(generics, false);
    syn::visit::Visit::visit_type(&mut mentions, ty);
    mentions.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_called_as_a_field_would_be() {
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
