//! Whether a tree is ready, and what keeps it from that.
//!
//! Looks at a [`Status`] only.

use std::fmt::{self, Write as _};

use super::{ChildInfo, Status, SupervisorInfo};
use crate::invisible::Visible;
use crate::path::Path;

/// A child that isn't ready.
///
/// Displayed as a line of text: `app/db: restarting, attempt 4 in 3.2s, last: failed: no route`.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// app.terminate_child("db").await?;
///
/// let status = app.status().await?;
/// assert!(!status.is_ready());
/// assert_eq!(status.problems()[0].path.as_str(), "app/db");
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The child.
    pub path: Path,
    /// What is wrong, in a few words.
    pub problem: String,
    /// Whether the tree isn't ready because of it.
    pub essential: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.essential { "" } else { " (not essential)" };
        write!(f, "{}: {}{optional}", self.path, self.problem)
    }
}

impl Status {
    /// Returns whether the root and every [essential](crate::ChildSpec::essential) child below it are
    /// [ready](ChildInfo::ready), at every level, and dynamic supervisors have as many active children as
    /// [`min_ready`](crate::DynamicSupervisorBuilder::min_ready) specifies.
    ///
    /// What is below a child that isn't essential doesn't count.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.problems().iter().all(|problem| !problem.essential)
    }

    /// Returns every child that isn't [ready](ChildInfo::ready), and every supervisor that lacks active children, a
    /// supervisor before its children.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut left = vec![(&self.root, true)];
        while let Some((node, above)) = left.pop() {
            let child = &node.child;
            let essential = above && child.essential;
            if !child.ready {
                let (path, problem) = (child.path.clone(), problem(child));
                problems.push(Problem { path, problem, essential });
            }
            let lacks = node.supervisor.as_deref().filter(|it| it.lacks_active > 0);
            if let Some(SupervisorInfo { min_ready, lacks_active, .. }) = lacks {
                let active = min_ready.saturating_sub(*lacks_active);
                let problem = format!("{active} of {min_ready} children are active");
                problems.push(Problem { path: child.path.clone(), problem, essential });
            }
            left.extend(node.children.iter().rev().map(|child| (child, essential)));
        }
        problems
    }
}

fn problem(child: &ChildInfo) -> String {
    let mut text = child.lifecycle.to_string();
    if child.healthy == Some(false) {
        text.push_str(", unhealthy");
    }
    // Writing to a string doesn't fail.
    if let Some(problem) = &child.problem {
        let _ = write!(text, ": {}", Visible(problem));
    }
    if let Some(why) = child.why {
        let _ = write!(text, ", {why}");
    }
    if let Some(next) = child.next {
        let _ = write!(text, ", attempt {} in {:.1?}", next.attempt, next.remaining);
    }
    if let Some(last) = &child.last_exit {
        let _ = write!(text, ", last: {last}");
    }
    text
}
