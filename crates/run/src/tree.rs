//! The tree: one supervisor, with a child for each process and one that reloads the file.

use std::sync::Arc;

use verger::config::ApplyError;
use verger::policy::Start;
use verger::{BuildError, ChildSpec, Supervisor};

use crate::file::Definition;
use crate::mistake::InputError;
use crate::reload::{self, Source};

/// The name of the root.
pub(crate) const ROOT: &str = "app";

/// Returns the tree with its policies, ready to be started.
///
/// # Errors
///
/// If verger refuses a part of the tree or a policy.
pub(crate) async fn configured(
    definition: &Definition,
    source: &Arc<Source>,
) -> Result<Supervisor, InputError> {
    let tree = build(definition, reload::child(source))?;
    tree.configured(&definition.config).await.map_err(|error| definition.not_applied(error))
}

/// Returns the tree without its policies.
pub(crate) fn build(definition: &Definition, reload: ChildSpec) -> Result<Supervisor, InputError> {
    let root = Supervisor::builder(ROOT)
        // A process that isn't ready delays only those that require it.
        .start(Start::Concurrent)
        .child(reload);
    let processes = definition.processes.iter();
    let root = processes.fold(root, |root, (name, process)| root.child(process.child(name)));
    root.build().map_err(|error: BuildError| InputError::Tree {
        file: definition.places.file().to_owned(),
        source: error,
    })
}

impl Definition {
    /// Returns why the policies or a plan were refused, with the places in the file.
    pub(crate) fn not_applied(&self, error: ApplyError) -> InputError {
        match error {
            ApplyError::Invalid(mistakes) => InputError::Invalid(self.places.translate(&mistakes)),
            source => InputError::NotApplied { file: self.places.file().to_owned(), source },
        }
    }
}
