//! The supervisor of a child's own children.

use std::sync::Arc;

use super::builder::{DynamicSupervisor, TreeBuilder};
use super::check;
use crate::child::Context;
use crate::error::ControlError;
use crate::exit::Exit;
use crate::handle::{SupervisorHandle, supervisor_below, supervisor_of};
use crate::runtime::{End, supervise};

impl Context {
    /// Returns a handle to the supervisor of the child's own children. The first call starts it.
    ///
    /// It is the supervisor that [`children_with`](Self::children_with) has started. If there is none, this starts a
    /// [`DynamicSupervisor`] with the defaults of its builder.
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
    /// let rooms = app.supervisor("rooms").await?.children().await?;
    /// let paths: Vec<_> = rooms.iter().map(|room| room.path.as_str()).collect();
    /// assert_eq!(paths, ["app/rooms/lobby#1", "app/rooms/garden#2"]);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn children(&self) -> SupervisorHandle {
        loop {
            if let Some(own) = self.incarnation.own_supervisor() {
                return SupervisorHandle::new(own);
            }
            match self.children_with(DynamicSupervisor::builder("children")) {
                Ok(children) => return children,
                // Another task of the child has started them.
                Err(ControlError::HasChildren { .. }) => {}
                Err(error) => unreachable!("the defaults are valid: {error}"),
            }
        }
    }

    /// Starts the supervisor of the child's own children, and returns a handle to it.
    ///
    /// It is an ordinary supervisor, with any strategy, limits and nested supervisors. It runs at the path of this child,
    /// and the builder's name isn't part of that: a child `parser` of `app/ingest` is `app/ingest/parser`.
    /// For more than one supervisor, nest them.
    ///
    /// * The children belong to this incarnation. When the child's function, or its [`run`](crate::Child::run), has
    ///   returned, the supervisor stops them, in its order and each with its own grace. Then
    ///   [`deactivate`](crate::Child::deactivate) is called.
    /// * If the child was cancelled, all this is within its own grace: children that don't stop in time are aborted. An
    ///   ordered supervisor stops its children one after another, so give the child a
    ///   [`shutdown`](crate::ChildSpec::shutdown) that is long enough for all of them.
    /// * If the child panics or is aborted, its children are aborted.
    /// * The next incarnation begins once all of them have ended, and without any of them.
    /// * If the supervisor gives up, the child fails as [`Escalated`](crate::ExitReason::Escalated).
    ///
    /// This doesn't wait until the children are active: [`child`](SupervisorHandle::child) does. A configuration file
    /// can't name children of a worker, but its `[common]` section applies to them, too. Messages that are left in
    /// their mailboxes when the incarnation ends become dead letters. On the context of an incarnation that has ended,
    /// this starts nothing, and calls of the handle fail.
    ///
    /// ```
    /// use verger::{Context, Exit, Strategy, Supervisor, worker};
    ///
    /// async fn idle(ctx: Context) {
    ///     ctx.cancelled().await;
    /// }
    ///
    /// async fn ingest(ctx: Context) -> Exit {
    ///     let parts = Supervisor::builder("parts")
    ///         .strategy(Strategy::RestForOne)
    ///         .child(worker("socket", idle))
    ///         .child(worker("parser", idle));
    ///     ctx.children_with(parts)?.child("parser").await?;
    ///     ctx.set_status("both parts are active");
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker("ingest", ingest)).build()?.start().await?;
    /// # tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///
    /// assert_eq!(app.child("ingest/parser").await?.incarnation(), Some(1));
    /// # let ingest = app.which_child("ingest").await?;
    /// # assert_eq!(ingest.status.as_deref(), Some("both parts are active"));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] with the errors of [`build`](crate::SupervisorBuilder::build), if the description
    ///   is invalid,
    /// * [`ControlError::HasChildren`] if the child already has its own supervisor, from this method or from
    ///   [`children`](Self::children).
    ///
    pub fn children_with(
        &self,
        builder: impl TreeBuilder,
    ) -> Result<SupervisorHandle, ControlError> {
        let check_none = || match self.incarnation.own_supervisor() {
            Some(_) => Err(ControlError::HasChildren { path: self.path() }),
            None => Ok(()),
        };
        check_none()?;
        let path = supervisor_of(self).path().join(&self.incarnation.segment());
        let blueprint = check::below_worker(&builder.into_description(), &path)?;
        let own = supervisor_below(self, &blueprint, true);
        if !self.spawn_own(Arc::clone(&own), || supervise(Arc::clone(&own), None, exit)) {
            own.close(End::Aborted);
            // Another task of the child was faster, unless the child has ended.
            check_none()?;
        }
        Ok(SupervisorHandle::new(own))
    }
}

/// What the end of the supervisor means for the child that owns it.
fn exit(end: &End) -> Exit {
    match end {
        // The child has ended.
        End::Aborted => Ok(()),
        end => end.exit(),
    }
}
