//! What a keeper reports, and how it is ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::FencingToken;

/// What has changed for the child that a lease guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseChange {
    /// The child is on standby. Reported after the first answer, and when the holder or the problem changes.
    Standby {
        /// The holder, as the engine has answered last, if it knows the holder.
        holder: Option<Arc<str>>,
        /// Why the last answer is unknown, if it is.
        problem: Option<Arc<str>>,
    },
    /// The lease is granted.
    Granted(FencingToken),
    /// The lease is lost. Nothing is reported after that.
    Lost(LossReason),
}

/// How a keeper is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// Gives the lease back, so that the next holder gets it at once.
    Release,
    /// Lets the lease expire, because the child may still run.
    Abandon,
}

/// Why a lease is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LossReason {
    /// The engine has answered *no* to a request to renew.
    Refused,
    /// No request that was sent within the renew deadline was answered with *yes*.
    NotRenewed {
        /// The renew deadline.
        within: Duration,
        /// Why the last answer is unknown. `None` if no request has failed: the program was paused or blocked.
        problem: Option<Arc<str>>,
    },
    /// The machine was suspended, and the renew deadline passed in that time.
    Suspended {
        /// How long it was suspended since the last renewal.
        suspended: Duration,
    },
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => {
                f.write_str("not renewed: the lease has expired, or another holder has it")
            }
            Self::NotRenewed { within, problem: Some(problem) } => {
                write!(f, "not renewed within {within:?}: {problem}")
            }
            Self::NotRenewed { within, problem: None } => {
                write!(f, "not renewed within {within:?}: the program was paused or blocked")
            }
            Self::Suspended { suspended } => {
                write!(f, "not renewed: the machine was suspended for {suspended:?}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_says_why() {
        let within = Duration::from_secs(10);
        let problem = Some("no answer within 3s".into());
        let suspended = Duration::from_millis(20_500);
        for (reason, text) in [
            (LossReason::Refused, "not renewed: the lease has expired, or another holder has it"),
            (
                LossReason::NotRenewed { within, problem },
                "not renewed within 10s: no answer within 3s",
            ),
            (
                LossReason::NotRenewed { within, problem: None },
                "not renewed within 10s: the program was paused or blocked",
            ),
            (
                LossReason::Suspended { suspended },
                "not renewed: the machine was suspended for 20.5s",
            ),
        ] {
            assert_eq!(reason.to_string(), text);
        }
    }
}
