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
    /// Returns a handle to the child's own dynamic supervisor, which the first call starts.
    ///
    /// Its children are below the path of this child: a child `conn` of `app/listener` is
    /// `app/listener/conn#1`. They belong to this incarnation. When the child's function, or its
    /// [`run`](crate::Child::run), has returned, they are stopped in parallel, each within its own grace, and
    /// before [`deactivate`](crate::Child::deactivate). If the child was cancelled, all this is within its own
    /// grace: children that don't stop in time are aborted. If the child panics or is aborted, they are aborted.
    /// The next incarnation begins once all have ended, and without any of them.
    ///
    /// The defaults are those of [`DynamicSupervisor::builder`]; to change them, use
    /// [`children_with`](Self::children_with). If the supervisor gives up, the child fails as
    /// [`Escalated`](crate::ExitReason::Escalated).
    ///
    /// A configuration file can't name children of a worker, but its `[common]` section applies to them, too.
    ///
    /// As every handle, it addresses the supervisor that runs at its path: when the child was restarted, that
    /// of the next incarnation. If the supervisor has ended while the child runs, for example because a call
    /// has stopped it, the next call of this method starts another one. On the context of an incarnation that
    /// has ended, it starts none.
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
        let path = supervisor_of(self).path().join(&self.incarnation.segment());
        let leak_timeout = supervisor_of(self).blueprint().rules.leak_timeout;
        let blueprint = check::own(&builder.description, &path, leak_timeout)?;
        let shared = supervisor_below(self, &Arc::new(blueprint));
        let own: Arc<dyn OwnSupervisor> = Arc::clone(&shared) as _;
        // Before anything is changed: it panics outside of a runtime.
        let _runtime = tokio::runtime::Handle::current();
        let admitted = self.incarnation.admit_helper();
        match admitted.map(|guard| (guard, self.set_own_supervisor(&own))) {
            Some((guard, Ok(()))) => {
                self.spawn_own(guard, supervise(Arc::clone(&shared), None, exit));
                Ok(SupervisorHandle::new(shared))
            }
            // Another task of the child has started it.
            Some((_, Err(Some(own)))) => Ok(handle(own)),
            // The child has ended.
            Some((_, Err(None))) | None => {
                shared.close(End::Aborted);
                Ok(SupervisorHandle::new(shared))
            }
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
