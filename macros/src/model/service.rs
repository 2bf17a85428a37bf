//! The parameters of a worker function that are a `Service<T>`, recognised by their name.

use syn::{GenericArgument, PatType, PathArguments, Type};

use super::signature::{last_segment, without_reference};

/// Returns whether a type is named `Service`, or a reference to one.
pub(crate) fn is_service(ty: &Type) -> bool {
    last_segment(without_reference(ty)).is_some_and(|last| last.ident == "Service")
}

/// A service that a function takes.
pub(crate) struct ServiceParam {
    /// Its index among the parameters besides the context.
    pub(crate) index: usize,
    /// The type of the value.
    pub(crate) value: Type,
}

impl ServiceParam {
    /// Returns all services among these parameters.
    pub(crate) fn find<'a>(params: impl IntoIterator<Item = &'a PatType>) -> Vec<Self> {
        let params = params.into_iter().enumerate();
        let services = params.filter_map(|(index, param)| {
            let value = is_service(&param.ty).then(|| value_type(&param.ty)).flatten()?;
            Some(Self { index, value })
        });
        services.collect()
    }
}

/// Returns the `T` of a `Service<T>`.
pub(crate) fn value_type(ty: &Type) -> Option<Type> {
    let service = last_segment(without_reference(ty)).map(|service| &service.arguments);
    if let Some(PathArguments::AngleBracketed(arguments)) = service
        && arguments.args.len() == 1
        && let GenericArgument::Type(value) = &arguments.args[0]
        && !matches!(value, Type::Infer(_) | Type::ImplTrait(_))
    {
        return Some(value.clone());
    }
    None
}
