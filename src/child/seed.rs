//! Seeds: what a child grows from, again and again.
//!
//! A [`Seed`] is a name and a [`Recipe`]. It doesn't know how the child is treated, which is the
//! spec's business, nor who runs it.
//!
//! # Invariants
//!
//! 1. Who holds a seed keeps it as it is: it gets another name only while nobody else has it.
//! 2. A recipe is one step away at most, however often a child was renamed.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::run::Run;
use super::source::Source;
use super::task::TaskFuture;
use super::{Child, ChildSpec, Context};
use crate::error::{BuildError, BuildWarning};
use crate::exit::{Exit, ExitError};
use crate::mailbox::MailboxControl;
use crate::path::{Trail, segment};

/// What something that can fail is behind its box.
pub(crate) type ExitFuture = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// A child that is a function.
pub(crate) trait Function: Send + Sync {
    /// What makes the task of an incarnation of it. Not the task itself, which takes the run with it, and
    /// that lends us this.
    fn task(&self) -> fn(Arc<Run>) -> TaskFuture;

    fn as_any(&self) -> &dyn Any;

    fn source(&self) -> &dyn Source;

    /// What it does, without a task.
    #[cfg(feature = "testing")]
    fn call(&self, ctx: Context) -> ExitFuture;
}

/// A child that is a value.
pub(crate) trait Factory: Send + Sync {
    /// Makes it. It may be refused what it is to be made with.
    fn make(&self, ctx: &Context) -> Result<Box<dyn Child>, ExitError>;

    fn source(&self) -> &dyn Source;
}

/// How one incarnation is made.
pub(crate) enum Recipe {
    Function(Arc<dyn Function>),
    Object(Box<dyn Factory>),
    /// A description that has to be checked before it can be run.
    Nested(Box<dyn Nested>),
}

/// A description of children within a child.
///
/// It is checked in two steps with its children between them, by a caller that keeps a list and
/// does not recurse, because a tree may be a thousand levels deep. The last name of `path` is the
/// one it has as a child, which may be another than its builder was given.
pub(crate) trait Nested: Send + Sync + 'static {
    fn children(&self) -> &[ChildSpec];

    /// Checks what can be checked without the children.
    fn check(&self, path: &Trail) -> Result<(), BuildError>;

    /// Checks the rest, and makes it runnable. `children` are its children, resolved.
    fn resolve(
        &self,
        path: &Trail,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError>;

    /// The same with every child replaced by what `change` makes of it.
    #[cfg(feature = "testing")]
    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Box<dyn Nested>;
}

/// What a checked description is run with.
pub(crate) struct Resolved {
    pub(crate) seed: Arc<Seed>,
    /// How long it may take to abort all that is below.
    pub(crate) abort_bound: Duration,
}

/// What all incarnations of a child, and all children of one spec, share.
pub(crate) struct Seed {
    pub(crate) name: Arc<str>,
    origin: Origin,
}

/// Where a seed has its recipe.
enum Origin {
    Own(Recipe),
    /// In the seed that this one was before it got another name, and that others have as well.
    Of(Arc<Seed>),
}

impl Seed {
    pub(crate) fn new(name: Arc<str>, recipe: Recipe) -> Self {
        Self { name, origin: Origin::Own(recipe) }
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        match &self.origin {
            Origin::Own(recipe) => recipe,
            Origin::Of(origin) => origin.recipe(),
        }
    }

    fn source(&self) -> Option<&dyn Source> {
        match self.recipe() {
            Recipe::Function(function) => Some(function.source()),
            Recipe::Object(factory) => Some(factory.source()),
            Recipe::Nested(_) => None,
        }
    }

    /// What a child of it is, if that says more than that it is a supervisor.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        self.source()?.type_name()
    }

    /// The mailbox that its recipe lends to each incarnation.
    pub(crate) fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        self.source()?.mailbox()
    }

    /// Whether it has a mailbox, or anything below it has.
    pub(crate) fn lends(&self) -> bool {
        self.source().is_some_and(Source::lends)
    }

    /// Who is declared below it.
    pub(crate) fn children(&self) -> &[ChildSpec] {
        self.source().map_or(&[], Source::children)
    }

    /// Gives it another name, and to nobody else who has it.
    pub(crate) fn rename(self: &mut Arc<Self>, name: Arc<str>) {
        if let Some(seed) = Arc::get_mut(self) {
            seed.name = name;
            return;
        }
        let origin = match &self.origin {
            Origin::Own(_) => Arc::clone(self),
            Origin::Of(origin) => Arc::clone(origin),
        };
        *self = Arc::new(Self { name, origin: Origin::Of(origin) });
    }

    pub(crate) fn segment(&self, serial: Option<NonZeroU64>) -> String {
        segment(&self.name, serial)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::worker;
    use super::*;

    fn seed() -> Arc<Seed> {
        worker("a", async |_| ()).seed
    }

    #[test]
    fn whoever_has_one_name_only_pays_nothing_for_those_that_have_two() {
        assert_eq!(size_of::<Origin>(), size_of::<Recipe>());
    }

    /// With its counts 56, which is the most that is in 64 of the allocator's.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_seed_takes_40_bytes() {
        assert_eq!(size_of::<Seed>(), 40);
    }

    #[test]
    fn a_seed_that_nobody_else_has_is_renamed_where_it_is() {
        let mut seed = seed();
        let before = Arc::as_ptr(&seed);

        seed.rename("b".into());

        assert_eq!((&*seed.name, Arc::as_ptr(&seed)), ("b", before));
    }

    #[test]
    fn a_recipe_is_one_step_away_however_often_its_seed_was_renamed() {
        let mut renamed = seed();
        let recipe: *const Recipe = renamed.recipe();
        let mut others = Vec::new();

        for name in ["b", "c", "d"] {
            others.push(Arc::clone(&renamed));
            renamed.rename(name.into());
        }

        let names: Vec<_> = others.iter().map(|seed| &*seed.name).collect();
        assert_eq!((&*renamed.name, names), ("d", vec!["a", "b", "c"]));
        assert!(std::ptr::eq(renamed.recipe(), recipe));
        let Origin::Of(origin) = &renamed.origin else { panic!("it has a recipe of its own") };
        assert!(matches!(origin.origin, Origin::Own(_)));
    }
}
