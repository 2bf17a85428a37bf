//! The requests of handles, and their answers.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::oneshot;

use super::blueprint::Blueprint;
use crate::child::{ChildSpec, ConfigSpec, MailboxControl};
use crate::core;
use crate::error::ControlError;
use crate::panic::catch_panic;
use crate::path::{Path, SerialName};
use crate::policy::ChildRules;
use crate::status::{ChildInfo, ChildSpecInfo, Counts, SupervisorInfo};

/// The sender of an answer. If it is dropped, the supervisor has ended.
pub(crate) type Responder<T> = oneshot::Sender<Result<T, ControlError>>;

/// Answers a call, unless its future was dropped. The caller's waker may panic.
pub(crate) fn respond<T>(caller: Responder<T>, answer: Result<T, ControlError>) {
    catch_panic(|| drop(caller.send(answer)));
}

/// The last name of a child's path.
pub(crate) type Segment = String;

#[derive(Debug)]
pub(crate) enum HandleRequest {
    /// Add a resolved child, and start it.
    Start(NewChild),
    /// Call an operation on one child.
    Act {
        segment: Segment,
        call: &'static str,
        note: Option<Arc<CallNote>>,
        request: core::ChildRequest,
        answer: Responder<Started>,
    },
    Which {
        segment: Segment,
        answer: Responder<ChildInfo>,
    },
    /// Return the mailbox of one child, if it has one.
    Mailbox {
        segment: Segment,
        answer: Responder<Option<Arc<dyn MailboxControl>>>,
    },
    Spec {
        segment: Segment,
        answer: Responder<ChildSpecInfo>,
    },
    Count {
        answer: Responder<Counts>,
    },
    /// Describe a page of children, from a place in the start order.
    Page {
        place: u64,
        answer: Responder<Page>,
    },
    /// Look up the values of children again.
    Refresh {
        which: WhichChildren,
        answer: Responder<Option<u64>>,
    },
    /// Look up the values of one child again, and wait for what follows.
    Configure {
        segment: Segment,
        /// Whether a start that fails is left to the caller.
        trial: bool,
        answer: Responder<Started>,
    },
    /// Look up the values of the supervisor again. Answers whether they have changed, so that the values of
    /// its children have to be looked up, too.
    RefreshRules {
        answer: Responder<bool>,
    },
    /// Replace the code of the supervisor and of its children once no operation on several of them runs. Those
    /// that are new aren't started.
    Recode(Recode),
    /// Describe children for a plan.
    Facts {
        which: WhichChildren,
        answer: Responder<FactsPage>,
    },
    /// Take in what the keeper of a child's lease reports.
    #[cfg(feature = "lease")]
    Lease {
        key: core::Key,
        /// The number of the keeper.
        keeper: u64,
        change: crate::lease::LeaseChange,
    },
    /// Count that the loop has turned.
    Turn(Arc<AtomicU64>),
}

/// A child that a caller adds.
#[derive(Debug)]
pub(crate) struct NewChild {
    pub(crate) spec: ChildSpec,
    pub(crate) addition: Addition,
    pub(crate) note: Option<Arc<CallNote>>,
    pub(crate) answer: Responder<Started>,
}

/// What becomes of a child that a caller adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addition {
    /// It is removed if its first activation fails.
    Start,
    /// It is supervised like a child that the builder has declared.
    Declare,
    /// So it is, in the place of the child of its name, which is stopped and removed.
    Replace,
}

/// What waits until the children of a supervisor are as it needs them.
#[derive(Debug)]
pub(crate) enum Pending {
    /// For the end of an operation on several children.
    Recode(Recode),
    /// For the end of the child that is replaced, which has this place in the start order.
    Replacement { old: core::Key, place: u64, new: NewChild },
}

/// On whose behalf a call is made, and why.
#[derive(Debug)]
pub(crate) struct CallNote {
    pub(crate) by: Arc<str>,
    pub(crate) reason: Option<Arc<str>>,
}

/// New code of a supervisor and of its children.
#[derive(Debug)]
pub(crate) struct Recode {
    /// `None`: only wait.
    pub(crate) blueprint: Option<Arc<Blueprint>>,
    /// The children that are new. Others that don't exist have ended, or were deleted.
    pub(crate) added: Vec<Segment>,
    pub(crate) answer: Responder<()>,
}

/// The children that a request is about.
#[derive(Debug)]
pub(crate) enum WhichChildren {
    /// Those with these last names of a path. Others are left out.
    Named(Vec<Segment>),
    /// A page of all, from a place in the start order.
    From(u64),
}

/// What a plan has to know of a child.
#[derive(Clone, Debug)]
pub(crate) struct ChildFacts {
    pub(crate) name: Arc<str>,
    /// Under a dynamic supervisor.
    pub(crate) serial: Option<NonZeroU64>,
    pub(crate) rules: Arc<ChildRules>,
    pub(crate) config: Option<Arc<ConfigSpec>>,
    pub(crate) has_mailbox: bool,
}

/// Some children of a supervisor, in start order.
#[derive(Debug)]
pub(crate) struct FactsPage {
    pub(crate) children: Vec<ChildFacts>,
    /// Where the next page begins, or `None` after the last one.
    pub(crate) next: Option<u64>,
}

/// The last name of a child's path, from which the path is built on demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildName {
    pub(crate) name: Arc<str>,
    pub(crate) serial: Option<NonZeroU64>,
}

impl ChildName {
    /// Whether this is the last name of the child's path.
    pub(crate) fn is(&self, segment: &str) -> bool {
        match self.serial {
            None => *self.name == *segment,
            Some(serial) => {
                SerialName::parse(segment) == Some(SerialName { name: &self.name, serial })
            }
        }
    }

    pub(crate) fn under(&self, parent: &Path) -> Path {
        parent.child(&self.name, self.serial)
    }
}

/// The successful answer to an operation on a child.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) child: ChildName,
    pub(crate) outcome: StartOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartOutcome {
    Up(u32),
    Declined,
    /// The child waits for these siblings.
    Gated(Vec<String>),
    Dormant,
    /// The operation starts no child.
    Done,
}

/// Some children of a supervisor, in start order.
#[derive(Debug)]
pub(crate) struct Page {
    /// The sequence number of the last event that is reflected here.
    pub(crate) seq: u64,
    /// What the first page says about the supervisor.
    pub(crate) supervisor: Option<Box<SupervisorInfo>>,
    pub(crate) children: Vec<ChildInfo>,
    /// Where the next page begins, or `None` after the last one. A child may be gone by then, but a
    /// place remains valid.
    pub(crate) next: Option<u64>,
}
