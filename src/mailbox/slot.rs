//! A mailbox as its supervisor sees it: something of a child's that outlives its incarnations,
//! whatever the messages are.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::Shared;
use super::{Delay, Drain};
use crate::core::Key;
use crate::dead_letter::{DeadLetterReason, Owner};
use crate::path::Path;

/// Whom a mailbox is lent to.
pub(crate) trait Borrower: Send + Sync {
    /// Whether it was asked to stop, and not because it had failed.
    fn is_innocent(&self) -> bool;

    /// It has acknowledged a message, and none is left that has failed before.
    fn acked(&self);

    /// It was given its final message: its end is not to be answered by a restart.
    fn is_to_end(&self);
}

/// Where a supervisor's hub is, and which child it is there. No other is the same as long as somebody
/// keeps the hub.
pub(crate) type Spot = (usize, Key);

/// Of a child of this hub, as whatever it is seen.
pub(crate) fn spot<T: ?Sized>(hub: &Arc<T>, key: Key) -> Spot {
    (Arc::as_ptr(hub).cast::<()>().addr(), key)
}

/// What it takes to borrow a mailbox.
pub(crate) struct Loan {
    pub(crate) borrower: Arc<dyn Borrower>,
    pub(crate) at: Spot,
    pub(crate) incarnation: u32,
}

/// Where a mailbox is in the tree.
pub(crate) enum Place {
    /// Its tree has not been started.
    Nowhere,
    At(At),
    /// Its supervisor has ended, and may come back.
    Adopted {
        /// Who knows whether it does.
        owner: Arc<dyn Owner>,
        path: Path,
        starts_on_message: bool,
    },
    /// It was there.
    Was(Path),
}

/// The child that a mailbox belongs to.
pub(crate) struct At {
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) key: Key,
    pub(crate) name: Arc<str>,
    pub(crate) serial: Option<NonZeroU64>,
    /// When what has come is handed out, unless the mailbox says otherwise.
    pub(crate) grace: Grace,
    pub(crate) starts_on_message: bool,
}

/// How long an incarnation has to live before it gets what came before its start: a [`Drain`] in a
/// quarter of the bytes, of which each mailbox has some.
#[derive(Clone, Copy)]
pub(crate) enum Grace {
    UntilReady,
    Micros(u16),
}

impl At {
    fn path(&self) -> Path {
        self.owner.path().child(&self.name, self.serial)
    }
}

impl Place {
    /// Whether a child has it that is there.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::At(_))
    }

    pub(super) fn is_adopted(&self) -> bool {
        matches!(self, Self::Adopted { .. })
    }

    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self, Self::Nowhere)
    }

    /// Whether there is somebody who buries its letters.
    pub(super) fn has_owner(&self) -> bool {
        matches!(self, Self::At(_) | Self::Adopted { .. })
    }

    pub(super) fn is(&self, place: Spot) -> bool {
        matches!(self, Self::At(at) if spot(&at.owner, at.key) == place)
    }

    pub(super) fn path(&self) -> Option<Path> {
        match self {
            Self::Nowhere => None,
            Self::At(at) => Some(at.path()),
            Self::Adopted { path, .. } | Self::Was(path) => Some(path.clone()),
        }
    }

    pub(super) fn owner_and_path(&self) -> Option<(Arc<dyn Owner>, Path)> {
        match self {
            Self::At(at) => Some((Arc::clone(&at.owner), at.path())),
            Self::Adopted { owner, path, .. } => Some((Arc::clone(owner), path.clone())),
            Self::Nowhere | Self::Was(_) => None,
        }
    }

    pub(super) fn drain(&self) -> Drain {
        match self {
            Self::At(At { grace: Grace::UntilReady, .. }) => Drain::AtReady,
            Self::At(At { grace: Grace::Micros(micros), .. }) => {
                Drain::After(Duration::from_micros((*micros).into()))
            }
            Self::Nowhere | Self::Adopted { .. } | Self::Was(_) => Drain::AtStart,
        }
    }

    pub(super) fn starts_on_message(&self) -> bool {
        match self {
            Self::At(At { starts_on_message, .. }) | Self::Adopted { starts_on_message, .. } => {
                *starts_on_message
            }
            Self::Nowhere | Self::Was(_) => false,
        }
    }
}

/// See the [module](self).
pub(crate) trait Slot: Send + Sync {
    /// Gives the mailbox its place. It keeps the one that it has, if it has one.
    fn bind(&self, place: At);

    /// Its supervisor has ended, and this one knows whether it comes back.
    fn adopted_by(&self, owner: Arc<dyn Owner>);

    /// Whether it has no place because its supervisor has ended.
    fn is_adopted(&self) -> bool;

    /// Whether it has never had a place: its child's turn has not come.
    fn is_nowhere(&self) -> bool;

    /// Where it is, if it has a place.
    fn bound_to(&self) -> Option<Path>;

    /// Whether this is its place. Another child may have been given the same mailbox, and come too late
    /// for it: that one's supervisor leaves it alone.
    fn is_at(&self, spot: Spot) -> bool;

    /// The incarnation of the child there is ready.
    fn ready(&self, spot: Spot, incarnation: u32);

    /// Nothing is given to the next incarnation before this.
    fn keep_back(&self, until: Instant);

    fn delays_traffic(&self) -> bool;

    /// The child has been started: from now on it takes in what the next incarnation is to read.
    fn reopen(&self);

    /// The one who has it was asked to stop, and is started again or isn't.
    fn stopping(&self, for_good: bool);

    /// Nobody comes for it: what there is becomes dead letters.
    fn away(self: Arc<Self>, reason: DeadLetterReason);

    /// The child is down until a message comes for it.
    fn rest(self: Arc<Self>);

    /// The child is gone.
    fn unbind(&self);

    /// How many messages there are, and how many there may be.
    fn load(&self) -> (usize, usize);
}

impl<M: Send + 'static> Slot for Shared<M> {
    fn bind(&self, place: At) {
        self.bind(Place::At(place));
    }

    fn adopted_by(&self, owner: Arc<dyn Owner>) {
        self.adopted_by(owner);
    }

    fn is_adopted(&self) -> bool {
        self.is_adopted()
    }

    fn is_nowhere(&self) -> bool {
        self.is_nowhere()
    }

    fn bound_to(&self) -> Option<Path> {
        self.bound_to()
    }

    fn is_at(&self, spot: Spot) -> bool {
        self.is_at(spot)
    }

    fn ready(&self, spot: Spot, incarnation: u32) {
        self.ready(spot, incarnation);
    }

    fn keep_back(&self, until: Instant) {
        self.keep_back(until);
    }

    fn delays_traffic(&self) -> bool {
        self.delay() == Delay::Traffic
    }

    fn reopen(&self) {
        self.reopen();
    }

    fn stopping(&self, for_good: bool) {
        self.stopping(for_good);
    }

    fn away(self: Arc<Self>, reason: DeadLetterReason) {
        Shared::away(&self, reason);
    }

    fn rest(self: Arc<Self>) {
        Shared::rest(&self);
    }

    fn unbind(&self) {
        self.unbind();
    }

    fn load(&self) -> (usize, usize) {
        self.load()
    }
}

impl fmt::Debug for dyn Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.load();
        f.debug_struct("Slot").field("len", &len).field("capacity", &capacity).finish()
    }
}
