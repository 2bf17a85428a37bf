//! What binds a mailbox to a place in the tree.

use std::sync::Arc;
use std::time::Duration;

use super::options::Drain;
use crate::child::{ChildBinding, ChildId, DefaultDrain, MailboxOwner};
use crate::core::Key;
use crate::path::Path;

/// The place of a mailbox in the tree.
pub(super) enum Binding {
    /// Its tree was not started.
    Unbound,
    Child(ChildBinding),
    /// Its supervisor has ended and may be restarted.
    Orphaned {
        /// The supervisor above, which knows whether that happens.
        owner: Arc<dyn MailboxOwner>,
        path: Path,
        start_on_message: bool,
    },
    /// Its child was removed.
    Ended(Path),
}

impl Binding {
    pub(super) fn is_child(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    pub(super) fn is_orphaned(&self) -> bool {
        matches!(self, Self::Orphaned { .. })
    }

    pub(super) fn is_unbound(&self) -> bool {
        matches!(self, Self::Unbound)
    }

    /// Returns `true` if some supervisor publishes the mailbox's dead letters.
    pub(super) fn has_owner(&self) -> bool {
        self.is_child() || self.is_orphaned()
    }

    pub(super) fn belongs_to(&self, child: ChildId) -> bool {
        matches!(self, Self::Child(it) if ChildId::new(&it.owner, it.key) == child)
    }

    pub(super) fn path(&self) -> Option<Path> {
        match self {
            Self::Unbound => None,
            Self::Child(child) => Some(child.path()),
            Self::Orphaned { path, .. } | Self::Ended(path) => Some(path.clone()),
        }
    }

    pub(super) fn owner_and_path(&self) -> Option<(Arc<dyn MailboxOwner>, Path)> {
        match self {
            Self::Child(child) => Some((Arc::clone(&child.owner), child.path())),
            Self::Orphaned { owner, path, .. } => Some((Arc::clone(owner), path.clone())),
            Self::Unbound | Self::Ended(_) => None,
        }
    }

    /// Returns the supervisor that runs the child, and the child's key there.
    pub(super) fn supervisor(&self) -> Option<(Arc<dyn MailboxOwner>, Key)> {
        match self {
            Self::Child(child) => Some((Arc::clone(&child.owner), child.key)),
            Self::Unbound | Self::Orphaned { .. } | Self::Ended(_) => None,
        }
    }

    pub(super) fn drain(&self) -> Drain {
        match self {
            Self::Child(ChildBinding { drain: DefaultDrain::AtReady, .. }) => Drain::AtReady,
            Self::Child(ChildBinding { drain: DefaultDrain::AfterMicros(micros), .. }) => {
                Drain::After(Duration::from_micros((*micros).into()))
            }
            Self::Unbound | Self::Orphaned { .. } | Self::Ended(_) => Drain::AtStart,
        }
    }

    pub(super) fn start_on_message(&self) -> bool {
        match self {
            Self::Child(ChildBinding { start_on_message, .. })
            | Self::Orphaned { start_on_message, .. } => *start_on_message,
            Self::Unbound | Self::Ended(_) => false,
        }
    }
}
