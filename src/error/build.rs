//! Errors of descriptions: what `build` refuses.

use std::fmt;
use std::time::Duration;

use crate::invisible::Visible;
use crate::path::{NameProblem, Path};
use crate::policy::BackoffProblem;

/// The reason why a description of a tree, or a spec, is refused.
///
/// Returned by [`build`](crate::SupervisorBuilder::build), and by
/// [`start_child`](crate::SupervisorHandle::start_child) inside of
/// [`ControlError::InvalidSpec`](crate::ControlError::InvalidSpec). `Debug` prints the same text as
/// `Display`.
///
/// ```
/// use verger::{BuildError, Context, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// let app = Supervisor::builder("app").child(worker("http", idle).requires("db"));
/// let error = app.build().unwrap_err();
/// assert!(matches!(error, BuildError::UnknownRequirement { .. }));
/// assert_eq!(
///     error.to_string(),
///     "`app/http` requires `db`, but `app` has no such child; it has no other children",
/// );
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of a child or a supervisor can't be part of a path.
    #[error("{} a bad name: {problem}", Named(.parent))]
    BadName {
        /// The supervisor, or `the root`.
        parent: String,
        /// The problem, and a name to use instead.
        problem: NameProblem,
    },
    /// Two children of one supervisor have the same name.
    #[error("`{parent}` has two children named `{name}`; give one of them another name")]
    DuplicateChild {
        /// The supervisor.
        parent: Path,
        /// The name that is used twice.
        name: String,
    },
    /// A supervisor is below too many others.
    #[error(
        "a supervisor named `{name}` is below {levels} others; a tree has at most {levels} levels of \
         supervisors, so give some of them a common supervisor"
    )]
    TooDeep {
        /// The name of the supervisor.
        name: String,
        /// How many levels of supervisors a tree may have.
        levels: usize,
    },
    /// A restart period is zero, so no restart would ever count.
    #[error(
        "`{path}` allows {max} restarts in a period of zero; write a period such as \
         `Duration::from_secs(60)`, or `unlimited_restarts()`"
    )]
    ZeroPeriod {
        /// The supervisor or the child.
        path: Path,
        /// The number of restarts that it allows.
        max: u32,
    },
    /// The maximum of a decaying intensity is negative, infinite or NaN.
    #[error(
        "`{path}` allows a score of {max}; write a number such as 5.0, or, to allow any number of \
         restarts, no limit"
    )]
    BadScore {
        /// The supervisor or the child.
        path: Path,
        /// The value that was set.
        max: f64,
    },
    /// A limit is set twice on the same builder or spec, and neither value has precedence.
    #[error(
        "`{path}` has both `{first}` and `{second}`, which set the same limit; remove one of them"
    )]
    SetTwice {
        /// The supervisor or the child.
        path: Path,
        /// The first call.
        first: String,
        /// The second call.
        second: String,
    },
    /// Two children share one mailbox, usually because a spec was cloned.
    #[error("`{path}` uses the mailbox of `{owner}`; make one mailbox for each child")]
    MailboxTaken {
        /// The child.
        path: Path,
        /// The child that has the mailbox already.
        owner: Path,
    },
    /// A child has `start_on_message`, but no mailbox that could receive a message.
    #[error(
        "`{path}` has `start_on_message()`, but no mailbox; make the child with \
         `worker_with_mailbox` or `child_with_mailbox`"
    )]
    NoMailbox {
        /// The child.
        path: Path,
    },
    /// The mailbox of a child has a capacity of zero, so no message would ever find room.
    #[error(
        "the mailbox of `{path}` has a capacity of 0; write `mailbox_with_capacity(1)` or more, or \
         `mailbox()` for the default of 1000"
    )]
    ZeroCapacity {
        /// The child.
        path: Path,
    },
    /// The backoff of a child resets at every start and no intensity limits its restarts.
    ///
    /// A child that always fails would be restarted forever, each time with the first delay.
    #[error(
        "the backoff of `{path}` resets as soon as the child is active, and no intensity limits \
         its restarts, so a child that always fails is restarted forever; write a `reset_after` \
         above zero, or limit its restarts with `own_restarts(12, Duration::from_secs(300))`"
    )]
    EndlessRestarts {
        /// The child, or the supervisor in whose defaults it is set.
        path: Path,
    },
    /// A fallback has a requirement, but it always uses those of the child that it replaces.
    #[error(
        "the fallback of `{path}` requires `{}`, but a fallback has the requirements of the child \
         that it replaces; write `requires({requirement:?})` on that child instead",
        Visible(.requirement)
    )]
    FallbackRequires {
        /// The child.
        path: Path,
        /// The sibling that the fallback requires.
        requirement: String,
    },
    /// A fallback has a lease, but it always has that of the child that it replaces.
    #[error(
        "the fallback of `{path}` has a lease, but a fallback has the lease of the child that it replaces; \
         write `lease(…)` on that child instead"
    )]
    FallbackLease {
        /// The child.
        path: Path,
    },
    /// A value of a child's lease is invalid.
    #[error("`{path}`: {problem}")]
    BadLease {
        /// The child.
        path: Path,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A lease lasts for so short a time after its renew deadline that the child can't be aborted before it expires.
    #[error(
        "the lease of `{path}` leaves {lasts:?} between its `renew_deadline` and its `ttl`, but an abort may take the \
         `leak_timeout` of {leak_timeout:?}; write a longer `ttl`, or a shorter `leak_timeout` on the supervisor"
    )]
    ShortLease {
        /// The child.
        path: Path,
        /// How long the lease lasts after its renew deadline.
        lasts: Duration,
        /// How long an abort of the child may take.
        leak_timeout: Duration,
    },
    /// The shutdown grace of a child doesn't fit between the renew deadline and the expiry of its lease.
    #[error(
        "`{path}` may take {} to stop, but its lease expires before that; write a `shutdown` of at most \
         {longest:?}, or a longer `ttl`",
        Grace(.grace)
    )]
    GraceBeyondLease {
        /// The child.
        path: Path,
        /// The grace. `None`: it has no end.
        grace: Option<Duration>,
        /// The longest grace that fits: `ttl` less `renew_deadline` and the leak timeout.
        longest: Duration,
    },
    /// A child requires a sibling that doesn't exist.
    #[error(
        "`{path}` requires `{}`, but `{parent}` has no such child; it has {known}",
        Visible(.requirement)
    )]
    UnknownRequirement {
        /// The child.
        path: Path,
        /// The supervisor.
        parent: Path,
        /// The required sibling.
        requirement: String,
        /// The names of its siblings.
        known: String,
    },
    /// A child requires a sibling that is declared after it, and children start sequentially.
    #[error(
        "`{path}` requires `{requirement}`, which is declared after it and would be started \
         later; declare `{requirement}` first, or start the children with `Start::Concurrent`"
    )]
    LaterRequirement {
        /// The child.
        path: Path,
        /// The required sibling.
        requirement: String,
    },
    /// A child requires a sibling with a lower stop order, which would stop before the child.
    #[error(
        "`{path}` has the stop order {order} and requires `{requirement}`, which has {lower} and would stop \
         before it; give `{requirement}` at least {order}"
    )]
    StopOrder {
        /// The child.
        path: Path,
        /// Its stop order.
        order: i8,
        /// The required sibling.
        requirement: String,
        /// The stop order of the sibling.
        lower: i8,
    },
    /// Children require each other in a cycle.
    #[error(
        "the children of `{parent}` require each other in a cycle: {cycle}; remove one of these requirements"
    )]
    RequirementCycle {
        /// The supervisor.
        parent: Path,
        /// The names on the cycle; the first is also the last.
        cycle: String,
    },
    /// A significant child is restarted after every exit, so it could never shut anything down.
    #[error(
        "`{path}` is significant, but restarted after every exit, as a permanent child is; make \
         it transient or temporary"
    )]
    SignificantPermanent {
        /// The child.
        path: Path,
    },
    /// A child made by [`once`](crate::once) is to be restarted, or started by messages.
    #[error(
        "`{path}` is made by `once`, so it can't be started again; remove its restart type, its exceptions \
         and `start_on_message()`, or use `worker`, whose function is called for each incarnation"
    )]
    RestartedOnce {
        /// The child.
        path: Path,
    },
    /// A child is significant, but its supervisor has no auto-shutdown.
    #[error(
        "`{path}` is significant, but `{parent}` has no auto-shutdown; add \
         `auto_shutdown(AutoShutdown::AnySignificant)` to it, or remove `significant()`"
    )]
    SignificantWithoutAutoShutdown {
        /// The child.
        path: Path,
        /// The supervisor.
        parent: Path,
    },
    /// A child of a dynamic supervisor has an option that needs ordered children.
    #[error("`{path}` has `{option}`, which a dynamic supervisor does not have; {remedy}")]
    NotForDynamic {
        /// The child.
        path: Path,
        /// The option.
        option: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A backoff has an invalid value.
    #[error("the backoff of `{path}` cannot work: {problem}")]
    BadBackoff {
        /// The child, or the supervisor in whose defaults it is set.
        path: Path,
        /// The problem, and what to write instead.
        problem: BackoffProblem,
    },
    /// The schedule of a [periodic child](crate::periodic) has an invalid value.
    #[cfg(feature = "periodic")]
    #[error("the schedule of `{path}` cannot work: {problem}")]
    BadSchedule {
        /// The child.
        path: Path,
        /// The problem, and what to write instead.
        problem: crate::periodic::ScheduleProblem,
    },
    /// A health check has a threshold of zero failures or successes.
    #[error(
        "the health check of `{path}` has a threshold of 0 {option}; write \
         `{option}(1)` or more"
    )]
    ZeroThreshold {
        /// The child.
        path: Path,
        /// The option: `failures` or `successes`.
        option: &'static str,
    },
    /// A supervisor has a watchdog, but it sends no heartbeats.
    #[error(
        "`{path}` is a supervisor, which sends no heartbeats; remove its `watchdog`, or set it in the \
         `defaults` of its children"
    )]
    WatchdogOfSupervisor {
        /// The supervisor.
        path: Path,
    },
    /// A duration that must be positive is zero.
    #[error("the {option} of `{path}` is zero; write a duration such as `{example:?}`")]
    ZeroDuration {
        /// The child or the supervisor.
        path: Path,
        /// The option.
        option: &'static str,
        /// A valid value.
        example: Duration,
    },
}

/// The subject of `BadName`: the root, or a child of this supervisor.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "the root" => f.write_str("the root has"),
            parent => write!(f, "`{parent}` has a child with"),
        }
    }
}

/// Lists the first names of `count` children, for errors about a name that doesn't exist.
pub(crate) fn known<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const MOST: usize = 10;
    let names: Vec<_> = names.take(MOST).map(|name| format!("`{name}`")).collect();
    match (names.join(", "), count.saturating_sub(MOST)) {
        (names, _) if names.is_empty() => "no other children".to_owned(),
        (names, 0) => names,
        (names, more) => format!("{names} and {more} more"),
    }
}

/// A grace, as a part of a sentence.
struct Grace<'a>(&'a Option<Duration>);

impl fmt::Display for Grace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(grace) => write!(f, "{grace:?}"),
            None => f.write_str("any time"),
        }
    }
}
