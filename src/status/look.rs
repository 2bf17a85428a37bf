//! What the picture shows of a child by shape and colour.
//!
//! Each [`Look`] has its own shape, so that nothing depends on colours. The state is also written as a word.

use crate::lifecycle::Lifecycle;
use crate::status::ChildInfo;

/// The look of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Waiting,
    Activating,
    Active,
    Unhealthy,
    Errored,
    Restarting,
    Deactivating,
    Stopped,
    Held,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Running as intended.
    Good,
    /// Starting, stopping or waiting for a restart.
    Busy,
    /// In need of attention.
    Bad,
    /// Not running.
    Off,
}

impl Look {
    #[cfg(test)]
    pub(super) const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Activating,
        Self::Active,
        Self::Unhealthy,
        Self::Errored,
        Self::Restarting,
        Self::Deactivating,
        Self::Stopped,
        Self::Held,
    ];

    #[inline]
    pub(super) fn of(child: &ChildInfo) -> Self {
        match child.lifecycle {
            Lifecycle::Discovered
            | Lifecycle::Resolved
            | Lifecycle::Errored
            | Lifecycle::Restarting
            | Lifecycle::Stopped
                if child.held =>
            {
                Self::Held
            }
            Lifecycle::Discovered | Lifecycle::Resolved => Self::Waiting,
            Lifecycle::Activating => Self::Activating,
            Lifecycle::Active if child.healthy == Some(false) => Self::Unhealthy,
            Lifecycle::Active => Self::Active,
            Lifecycle::Errored => Self::Errored,
            Lifecycle::Restarting => Self::Restarting,
            Lifecycle::Deactivating => Self::Deactivating,
            Lifecycle::Stopped => Self::Stopped,
        }
    }

    /// A word for classes and ids.
    #[inline]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Unhealthy => "unhealthy",
            Self::Errored => "errored",
            Self::Restarting => "restarting",
            Self::Deactivating => "deactivating",
            Self::Stopped => "stopped",
            Self::Held => "held",
        }
    }

    #[inline]
    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Active => Tone::Good,
            Self::Activating | Self::Restarting | Self::Deactivating => Tone::Busy,
            Self::Unhealthy | Self::Errored => Tone::Bad,
            Self::Waiting | Self::Stopped | Self::Held => Tone::Off,
        }
    }
}
