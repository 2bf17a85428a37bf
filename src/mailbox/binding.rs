//! What binds a mailbox to a place in the tree, and a loan of it to an incarnation.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Span;

use super::options::Drain;
use crate::core::{Key, MachineEvent};
use crate::dead_letter::Undelivered;
use crate::path::Path;

/// The supervisor of a mailbox's child.
pub(crate) trait MailboxOwner: Send + Sync {
    fn path(&self) -> Path;

    /// Publishes a message that could not be delivered.
    ///
    /// The message may be dropped in here, so the caller must hold no lock.
    fn dead_letter(&self, undelivered: Undelivered, now: Instant);

    fn notify(&self, event: MachineEvent);
}

/// The incarnation that a mailbox is lent to.
pub(crate) trait LoanHolder: Send + Sync {
    /// Returns a span in which the incarnation handles a message of this type.
    fn message_span(&self, message_type: &'static str) -> Span;

    /// Returns `true` if the incarnation was cancelled for a reason other than its own failure.
    fn is_cancelled_without_failure(&self) -> bool;

    /// Called when the incarnation has acknowledged a message and no message is left that has failed
    /// before.
    fn on_ack(&self);

    /// Called when the incarnation has received its final message: it must not be restarted.
    fn on_final_message(&self);
}

/// Identifies a child in the whole program.
///
/// It is unique for as long as the supervisor's shared state is kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildId {
    /// The address of the supervisor's shared state.
    supervisor: usize,
    key: Key,
}

impl ChildId {
    /// Identifies a child of `supervisor`, whatever trait the supervisor is seen through.
    pub(crate) fn new<T: ?Sized>(supervisor: &Arc<T>, key: Key) -> Self {
        Self { supervisor: Arc::as_ptr(supervisor).cast::<()>().addr(), key }
    }
}

/// A request to lend a mailbox to an incarnation.
pub(crate) struct MailboxLoan {
    pub(crate) holder: Arc<dyn LoanHolder>,
    pub(crate) child: ChildId,
    pub(crate) incarnation: u32,
}

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

/// The child that a mailbox belongs to.
pub(crate) struct ChildBinding {
    pub(crate) owner: Arc<dyn MailboxOwner>,
    pub(crate) key: Key,
    pub(crate) name: Arc<str>,
    pub(crate) serial: Option<NonZeroU64>,
    /// When queued messages are delivered to a new incarnation, unless the mailbox has its own option.
    pub(crate) drain: DefaultDrain,
    pub(crate) start_on_message: bool,
}

/// A default [`Drain`], in a quarter of the bytes, since every mailbox has one.
#[derive(Clone, Copy)]
pub(crate) enum DefaultDrain {
    AtReady,
    AfterMicros(u16),
}

impl ChildBinding {
    fn path(&self) -> Path {
        self.owner.path().child(&self.name, self.serial)
    }
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
