//! Children made from values, as the fields of a struct are.

use super::child_trait::Child;
use super::spec::ChildSpec;
use super::workers::child;

/// A value that [`component`] turns into a child: of a type that is `Child + Clone + Sync`, or a
/// [`ChildSpec`].
///
/// ```
/// use verger::{Child, Context, Exit, Supervisor, async_trait, component};
///
/// #[derive(Clone)]
/// struct Clock {
///     zone: String,
/// }
///
/// #[async_trait]
/// impl Child for Clock {
///     async fn run(&mut self, ctx: &Context) -> Exit {
///         ctx.set_status(&self.zone);
///         ctx.cancelled().await;
///         Ok(())
///     }
/// }
///
/// let app = Supervisor::builder("app").child(component("clock", Clock { zone: "UTC".into() }));
/// # drop(app);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a child",
    label = "has to be `Child + Clone + Sync`, or a `ChildSpec`",
    note = "each incarnation is a clone of the value: implement `Child` for its type, for example \
            with `#[worker]` on an `impl` block, and derive `Clone`",
    note = "a field that is itself a supervisor is marked `#[supervisor]` instead of `#[child]`"
)]
pub trait Component {
    /// Returns the spec of the child, under this name.
    #[track_caller]
    fn into_spec(self, name: String) -> ChildSpec;
}

/// The value is a prototype: each incarnation is a clone of it.
impl<C: Child + Clone + Sync> Component for C {
    #[track_caller]
    fn into_spec(self, name: String) -> ChildSpec {
        child(name, move || self.clone())
    }
}

/// The same spec under that name.
impl Component for ChildSpec {
    fn into_spec(self, name: String) -> ChildSpec {
        self.named(name)
    }
}

/// Describes a child that is made from a value.
///
/// A value of a type that implements [`Child`] is a prototype. Each incarnation is a clone of the
/// value that you pass, so no state of a failed incarnation is left. Share what must outlive an
/// incarnation, in an `Arc` for example. The clone is made in the child's own task: a panic in it is a
/// failure of the child. The options of [`Child::child_spec`] apply.
///
/// A [`ChildSpec`] is only renamed: see [`ChildSpec::named`].
///
/// ```
/// use verger::{Child, Context, Exit, async_trait, component, worker};
///
/// #[derive(Clone)]
/// struct Greeter {
///     greeting: &'static str,
///     greeted: u32,
/// }
///
/// #[async_trait]
/// impl Child for Greeter {
///     async fn run(&mut self, ctx: &Context) -> Exit {
///         self.greeted += 1;
///         println!("{} from {}, {} so far", self.greeting, ctx.path(), self.greeted);
///         Ok(())
///     }
/// }
///
/// // Each incarnation starts with `greeted: 0`.
/// let greeter = component("greeter", Greeter { greeting: "hello", greeted: 0 });
/// let clock = component("clock", worker("any", async |ctx| ctx.cancelled().await));
/// assert_eq!(clock.name(), "clock");
/// # drop(greeter);
/// ```
#[track_caller]
pub fn component(name: impl Into<String>, value: impl Component) -> ChildSpec {
    value.into_spec(name.into())
}
