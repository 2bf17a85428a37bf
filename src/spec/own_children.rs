//! The dynamic supervisor that a child can have of its own.

use std::any::Any;
use std::sync::Arc;

use super::builder::{DynamicSupervisor, DynamicSupervisorBuilder};
use super::check;
use crate::child::{Context, OwnSupervisor};
use crate::error::BuildError;
use crate::exit::Exit;
use crate::handle::{SupervisorHandle, supervisor_below, supervisor_of};
use crate::runtime::{End, SupervisorShared, supervise};

impl Context {
    /// Returns a handle to a dynamic supervisor of the child's own, which the first call starts.
    ///
    /// Its children are below the path of this child: a child `conn` of `app/listener` is
    /// `app/listener/conn#1`. They belong to this incarnation. When the child's function, or its
    /// [`run`](crate::Child::run), has returned, they are stopped in parallel, each within its own grace, and
    /// before [`deactivate`](crate::Child::deactivate). All this is inside of the grace of the child itself, if
    /// the child was cancelled. If the child panics or is aborted, they are aborted. The next incarnation begins
    /// once all have ended, and without any of them.
    ///
    /// The defaults are those of [`DynamicSupervisor::builder`]; to change them, use
    /// [`children_with`](Self::children_with). If the supervisor gives up, the child fails as
    /// [`Escalated`](crate::ExitReason::Escalated).
    ///
    /// On the context of an incarnation that has ended, the calls of the handle fail.
    ///
    /// ```
    /// use verger::{Child, Context, Exit, Supervisor, async_trait, component, worker};
    ///
    /// #[derive(Clone)]
    /// struct Rooms;
    ///
    /// #[async_trait]
    /// impl Child for Rooms {
    ///     async fn activate(&mut self, ctx: &Context) -> Exit {
    ///         for name in ["lobby", "garden"] {
    ///             let room = worker(name, async |ctx: Context| ctx.cancelled().await);
    ///             ctx.children().start_child(room).await?;
    ///         }
    ///         Ok(())
    ///     }
    ///
    ///     async fn run(&mut self, ctx: &Context) -> Exit {
    ///         ctx.cancelled().await;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(component("rooms", Rooms)).build()?.start().await?;
    ///
    /// let rooms = app.supervisor("rooms").await?.which_children().await?;
    /// let paths: Vec<_> = rooms.iter().map(|room| room.path.as_str()).collect();
    /// assert_eq!(paths, ["app/rooms/lobby#1", "app/rooms/garden#2"]);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The first call panics outside of a tokio runtime, as `tokio::spawn` does.
    #[must_use]
    pub fn children(&self) -> SupervisorHandle {
        let defaults = DynamicSupervisor::builder("children");
        self.children_with(defaults).expect("the defaults are valid")
    }

    /// Returns the same handle as [`children`](Self::children), and starts the supervisor as `builder`
    /// describes it, if this is the first call.
    ///
    /// The name of the builder has no meaning, because the children are below the path of this child.
    ///
    /// # Errors
    ///
    /// Those of [`build`](DynamicSupervisorBuilder::build).
    ///
    /// # Panics
    ///
    /// The first call panics outside of a tokio runtime, as `tokio::spawn` does.
    pub fn children_with(
        &self,
        builder: DynamicSupervisorBuilder,
    ) -> Result<SupervisorHandle, BuildError> {
        if let Some(own) = self.own_supervisor() {
            return Ok(handle(own));
        }
        let path = supervisor_of(self).lazy_path().child(&self.incarnation.segment());
        let blueprint = check::own(&builder.description, &path)?;
        let shared = supervisor_below(self, &Arc::new(blueprint));
        let own: Arc<dyn OwnSupervisor> = Arc::clone(&shared) as _;
        match self.set_own_supervisor(&own) {
            Ok(()) => {
                self.spawn_own(supervise(Arc::clone(&shared), None, exit));
                Ok(SupervisorHandle::new(shared))
            }
            // Another task of the child was faster.
            Err(own) => Ok(handle(own)),
        }
    }
}

fn handle(own: Arc<dyn OwnSupervisor>) -> SupervisorHandle {
    let own: Arc<dyn Any + Send + Sync> = own;
    let supervisor = own.downcast::<SupervisorShared>();
    SupervisorHandle::new(supervisor.expect("only this file sets it"))
}

/// What the end of the supervisor means for the child that owns it.
fn exit(end: &End) -> Exit {
    match end {
        // The child has ended.
        End::Aborted => Ok(()),
        end => end.exit(),
    }
}
