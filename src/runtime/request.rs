//! What a handle asks a supervisor, and where the answer goes.

use std::num::NonZeroU64;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::child::ChildSpec;
use crate::core;
use crate::error::ControlError;
use crate::path::Path;
use crate::status::{ChildInfo, ChildSpecInfo, Counts, SupervisorInfo};

/// Where an answer goes. Dropping it tells the caller that the supervisor has ended.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, ControlError>>;

/// A child that a handle speaks of, by its own part of the path.
pub(crate) type Segment = String;

#[derive(Debug)]
pub(crate) enum Request {
    /// Add a child, resolved already, and start it.
    Start {
        spec: ChildSpec,
        answer: Answer<Started>,
    },
    /// Do something to one child.
    Act {
        segment: Segment,
        call: &'static str,
        request: core::ChildRequest,
        answer: Answer<Started>,
    },
    Which {
        segment: Segment,
        answer: Answer<ChildInfo>,
    },
    Spec {
        segment: Segment,
        answer: Answer<ChildSpecInfo>,
    },
    Count {
        answer: Answer<Counts>,
    },
    /// A slice of the children, from a place in the start order.
    Page {
        place: u64,
        answer: Answer<Page>,
    },
}

impl Request {
    /// Whether others like it follow.
    pub(crate) fn is_slice(&self) -> bool {
        matches!(self, Self::Page { .. })
    }
}

/// A child by its own part of its path, which is put together only if somebody wants to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildName {
    pub(crate) name: Arc<str>,
    pub(crate) serial: Option<NonZeroU64>,
}

impl ChildName {
    pub(crate) fn under(&self, parent: &Path) -> Path {
        parent.child(&self.name, self.serial)
    }
}

/// What became of a call about a child.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) child: ChildName,
    pub(crate) result: Begun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Up(u32),
    Declined,
    Gated,
    Dormant,
    /// There was nothing to start.
    Done,
}

/// A slice of a supervisor's children, in start order.
#[derive(Debug)]
pub(crate) struct Page {
    /// The last event that is contained in what is said here.
    pub(crate) seq: u64,
    pub(crate) supervisor: SupervisorInfo,
    pub(crate) children: Vec<ChildInfo>,
    /// Where the next slice begins; `None`: this was the last. A place and not a child, who may be
    /// gone by then.
    pub(crate) next: Option<u64>,
}
