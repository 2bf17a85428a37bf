//! What starting or finding a child returns.

use std::fmt;
use std::sync::OnceLock;

use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{ChildName, StartOutcome, Started};

/// A child that was started or found through a handle.
///
/// ```
/// use verger::{Context, DynamicSupervisor, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns")).build()?;
/// let app = app.start().await?;
/// let conns = app.supervisor("conns").await?;
///
/// let conn = conns.start_child(worker("conn", async |ctx: Context| ctx.cancelled().await)).await?;
/// assert_eq!(conn.name(), "conn#1");
/// assert_eq!(conn.path().as_str(), "app/conns/conn#1");
/// assert_eq!(conn.incarnation(), Some(1));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ChildRef {
    parent: Path,
    child: ChildName,
    /// Built on demand.
    path: OnceLock<Path>,
    outcome: StartOutcome,
}

impl PartialEq for ChildRef {
    fn eq(&self, other: &Self) -> bool {
        (&self.parent, &self.child, self.outcome) == (&other.parent, &other.child, other.outcome)
    }
}

impl Eq for ChildRef {}

impl fmt::Debug for ChildRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ChildRef");
        shown.field("path", self.path()).field("outcome", &self.outcome).finish()
    }
}

impl ChildRef {
    pub(crate) fn new(parent: &SupervisorShared, started: Started) -> Self {
        let Started { child, outcome } = started;
        Self { parent: parent.path().clone(), child, path: OnceLock::new(), outcome }
    }

    /// Returns the path of the child.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.get_or_init(|| self.child.under(&self.parent))
    }

    /// Returns the last name of the child's path, to use in further calls.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path().name()
    }

    /// Returns the number of the incarnation that was started or found, if any.
    #[must_use]
    pub fn incarnation(&self) -> Option<u32> {
        match self.outcome {
            StartOutcome::Up(incarnation) => Some(incarnation),
            _ => None,
        }
    }

    /// Returns whether the child declined to start.
    #[must_use]
    pub fn declined(&self) -> bool {
        self.outcome == StartOutcome::Declined
    }

    /// Returns whether the child waits for a sibling that it requires and that is down for good.
    ///
    /// The child starts when that sibling does.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.outcome == StartOutcome::Gated
    }

    /// Returns whether the child waits for its first message, at which it starts.
    ///
    /// See [`start_on_message`](crate::ChildSpec::start_on_message).
    #[must_use]
    pub fn is_dormant(&self) -> bool {
        self.outcome == StartOutcome::Dormant
    }
}
