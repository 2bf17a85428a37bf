//! When a lease is requested, renewed and released, and what the answers mean.
//!
//! A [`Guard`] is pure: instants are arguments, and it neither waits nor calls an engine. A keeper asks for the next
//! [`GuardStep`] and carries it out.
//!
//! # Invariants
//!
//! 1. At most one request is in flight.
//! 2. The lease is held only until one renew deadline after the moment *before* the last request that was answered with
//!    *yes*. Neither the time that the answer took nor the time of a suspend extends that.
//! 3. An unknown answer extends nothing: an error, a panic of the engine, or no answer in time.
//! 4. After a loss, and after an end without a release, nothing is sent.
//! 5. After an end, requests are sent to give back a lease that is or may be granted, and for no other purpose. They
//!    are over within [`END_WITHIN`], and before the lease expires.
//! 6. A step that waits names an instant in the future.
//! 7. While the engine fails, a standby asks less and less often, at least every [`SLOWEST`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::LeaseInstant;
use super::engine::{Acquired, FencingToken, Released, Renewed};
use super::times::LeaseTimes;
use crate::clock::later;

#[cfg(test)]
mod tests;

/// How long an end takes at most.
const END_WITHIN: Duration = Duration::from_secs(2);

/// How often a standby asks an engine that fails, at the least.
const SLOWEST: Duration = Duration::from_secs(10);

/// After how long a standby that can't ask has another line, and then how often.
const SAID_AGAIN: Duration = Duration::from_secs(10);
const SAID_EVERY: Duration = Duration::from_secs(300);

/// How often a release is tried.
const RELEASES: u32 = 3;

/// How often the clock is read while the lease is held. A suspend makes no timer fire earlier.
const LOOK: Duration = Duration::from_millis(500);

/// What to ask an engine for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardRequest {
    Acquire,
    Renew(FencingToken),
    Release(FencingToken),
}

/// What came back for the request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Acquired(Acquired),
    Renewed(Renewed),
    Released(Released),
    /// With the reason why it is unknown.
    Unknown(Arc<str>),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GuardStep {
    Report(LeaseChange),
    Log(Line),
    Send(GuardRequest),
    /// Drop the request in flight. Its answer no longer counts.
    Drop,
    /// Wait until this instant, for the answer, or for the end.
    Wait(Instant),
    Done,
}

/// A line of the log about something that changes nothing for the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// For this time, no request of a standby was answered.
    NotAsked { problem: Arc<str>, waited: Duration },
    /// A request to renew has failed, and the one before has not.
    NotRenewed { problem: Arc<str>, lost_in: Duration },
    /// A request to renew has succeeded after others have failed.
    RenewedAgain,
    /// No attempt to release has succeeded.
    NotReleased { problem: Arc<str> },
}

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

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Guard {
    times: LeaseTimes,
    random: fastrand::Rng,
    phase: Phase,
    in_flight: Option<InFlight>,
    /// When the next request is due.
    next: Instant,
    /// The requests of a standby that have failed in a row.
    failing: Option<Failing>,
    /// What was reported last.
    standby: Option<LeaseChange>,
    /// Steps to return before any others.
    steps: VecDeque<GuardStep>,
}

#[derive(Debug)]
enum Phase {
    /// Requests the lease.
    Standby,
    /// The end came while the lease was requested. The answer is waited for until this instant.
    LastAnswer {
        until: Instant,
    },
    /// Gives back a grant that came too late.
    TooLate(Grant),
    /// Renews the lease.
    Held(Grant),
    Releasing(Release),
    Done,
}

/// Requests of a standby that have failed in a row.
#[derive(Debug)]
struct Failing {
    since: Instant,
    count: u32,
    /// Why the last one has failed.
    problem: Arc<str>,
    /// When the next line about it is due.
    said: Instant,
}

#[derive(Debug)]
struct Grant {
    token: FencingToken,
    /// When the last request was sent that was answered with *yes*.
    sent: LeaseInstant,
    /// Why no later request has succeeded.
    problem: Option<Arc<str>>,
}

#[derive(Debug)]
struct Release {
    token: FencingToken,
    until: Instant,
    /// How many attempts are left.
    left: u32,
    /// Why the last attempt has failed.
    problem: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    sent: LeaseInstant,
    /// When it counts as not answered.
    until: Instant,
}

impl Guard {
    /// Creates a guard that requests the lease at once.
    pub(super) fn new(times: LeaseTimes, random: fastrand::Rng, now: LeaseInstant) -> Self {
        Self {
            times,
            random,
            phase: Phase::Standby,
            in_flight: None,
            next: now.at(),
            failing: None,
            standby: None,
            steps: VecDeque::new(),
        }
    }

    /// Returns what to do next.
    pub(super) fn step(&mut self, now: LeaseInstant) -> GuardStep {
        self.check_deadlines(now);
        if let Some(step) = self.steps.pop_front() {
            return step;
        }
        if self.in_flight.is_none()
            && self.next <= now.at()
            && let Some(request) = self.send(now)
        {
            return GuardStep::Send(request);
        }
        match self.deadline(now) {
            Some(deadline) => GuardStep::Wait(deadline),
            None => GuardStep::Done,
        }
    }

    /// Takes the answer to the request in flight.
    pub(super) fn on_answer(&mut self, answer: Answer, now: LeaseInstant) {
        let Some(InFlight { sent, .. }) = self.in_flight.take() else { return };
        if !matches!(answer, Answer::Unknown(_)) {
            self.failing = None;
        }
        match (&mut self.phase, answer) {
            (Phase::Standby, Answer::Acquired(Acquired::Granted(token))) => {
                let grant = Grant { token, sent, problem: None };
                if now.since(sent) >= self.times.renew_deadline {
                    // The store may be about to grant the lease to another holder.
                    self.next = now.at();
                    self.phase = Phase::TooLate(grant);
                } else {
                    self.next = later(sent.at(), self.times.next_retry(&mut self.random));
                    self.phase = Phase::Held(grant);
                    self.steps.push_back(GuardStep::Report(LeaseChange::Granted(token)));
                }
            }
            (Phase::Standby, Answer::Acquired(Acquired::Held { by })) => self.on_standby(by, None),
            (Phase::Standby, Answer::Unknown(problem)) => {
                let holder = match &self.standby {
                    Some(LeaseChange::Standby { holder, .. }) => holder.clone(),
                    _ => None,
                };
                self.on_failing(Arc::clone(&problem), sent, now);
                self.on_standby(holder, Some(problem));
            }
            (Phase::LastAnswer { until }, Answer::Acquired(Acquired::Granted(token))) => {
                let until = *until;
                self.release(&Grant { token, sent, problem: None }, until, now);
            }
            (Phase::Held(grant), Answer::Renewed(Renewed::Extended)) => {
                grant.sent = sent;
                if grant.problem.take().is_some() {
                    self.steps.push_back(GuardStep::Log(Line::RenewedAgain));
                }
            }
            (Phase::Held(_), Answer::Renewed(Renewed::Lost)) => self.lose(LossReason::Refused),
            (Phase::Held(grant), Answer::Unknown(problem)) => {
                if grant.problem.replace(Arc::clone(&problem)).is_none() {
                    let lost_at = later(grant.sent.at(), self.times.renew_deadline);
                    let lost_in = lost_at.saturating_duration_since(now.at());
                    self.steps.push_back(GuardStep::Log(Line::NotRenewed { problem, lost_in }));
                }
            }
            // Whatever the answer is: another request follows, and it would be granted again.
            (Phase::TooLate(_), _) => self.phase = Phase::Standby,
            (Phase::Releasing(release), Answer::Unknown(problem)) => {
                release.problem = Some(problem);
                if release.left == 0 {
                    release.until = now.at();
                }
            }
            (Phase::LastAnswer { .. } | Phase::Releasing(_), _) => self.phase = Phase::Done,
            // An answer to a different request is as good as none.
            (Phase::Standby | Phase::Held(_) | Phase::Done, _) => {}
        }
    }

    /// Ends the guard. [`LeaseEnd::Release`] releases a lease that is held. A grant that isn't reported yet is always
    /// given back, because the child doesn't run.
    pub(super) fn end(&mut self, end: LeaseEnd, now: LeaseInstant) {
        let until = later(now.at(), END_WITHIN);
        match (std::mem::replace(&mut self.phase, Phase::Done), end) {
            (Phase::Standby, _) if self.in_flight.is_some() => {
                self.phase = Phase::LastAnswer { until };
            }
            (Phase::TooLate(grant), _) | (Phase::Held(grant), LeaseEnd::Release) => {
                self.drop_request();
                self.release(&grant, until, now);
            }
            (phase @ (Phase::LastAnswer { .. } | Phase::Releasing(_)), _) => self.phase = phase,
            (Phase::Standby | Phase::Held(_) | Phase::Done, _) => self.drop_request(),
        }
    }

    /// Reports that the child is on standby, if something about it has changed.
    fn on_standby(&mut self, holder: Option<Arc<str>>, problem: Option<Arc<str>>) {
        let standby = LeaseChange::Standby { holder, problem };
        if self.standby.as_ref() != Some(&standby) {
            self.standby = Some(standby.clone());
            self.steps.push_back(GuardStep::Report(standby));
        }
    }

    /// Notes that a request of a standby has failed, which delays the next one.
    fn on_failing(&mut self, problem: Arc<str>, sent: LeaseInstant, now: LeaseInstant) {
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: now.at(),
            count: 0,
            problem: Arc::clone(&problem),
            said: later(now.at(), SAID_AGAIN),
        });
        failing.count = failing.count.saturating_add(1);
        failing.problem = problem;
        let wait = self.times.next_poll_of_failing(failing.count, SLOWEST, &mut self.random);
        self.next = later(sent.at(), wait);
    }

    fn lose(&mut self, reason: LossReason) {
        self.phase = Phase::Done;
        // First, so that the drop of a request delays nothing.
        self.steps.push_back(GuardStep::Report(LeaseChange::Lost(reason)));
        self.drop_request();
    }

    fn release(&mut self, grant: &Grant, until: Instant, now: LeaseInstant) {
        let expires = later(grant.sent.at(), self.times.ttl);
        let until = until.min(expires);
        let (token, left) = (grant.token, RELEASES);
        self.phase = Phase::Releasing(Release { token, until, left, problem: None });
        self.next = now.at();
    }

    fn drop_request(&mut self) {
        if self.in_flight.take().is_some() {
            self.steps.push_back(GuardStep::Drop);
        }
    }

    /// Notes which deadlines have passed.
    fn check_deadlines(&mut self, now: LeaseInstant) {
        if let Some(reason) = self.loss(now) {
            self.lose(reason);
        }
        if self.in_flight.is_some_and(|InFlight { until, .. }| until <= now.at()) {
            self.steps.push_back(GuardStep::Drop);
            let timeout = self.times.request_timeout();
            self.on_answer(Answer::Unknown(format!("no answer within {timeout:?}").into()), now);
        }
        if let (Phase::Standby, Some(failing)) = (&self.phase, &mut self.failing)
            && failing.said <= now.at()
        {
            failing.said = later(now.at(), SAID_EVERY);
            let waited = now.at().saturating_duration_since(failing.since);
            let problem = Arc::clone(&failing.problem);
            self.steps.push_back(GuardStep::Log(Line::NotAsked { problem, waited }));
        }
        let problem = match &mut self.phase {
            Phase::LastAnswer { until } if *until <= now.at() => None,
            Phase::Releasing(release) if release.until <= now.at() => release.problem.take(),
            _ => return,
        };
        self.phase = Phase::Done;
        self.drop_request();
        self.steps.extend(problem.map(|problem| GuardStep::Log(Line::NotReleased { problem })));
    }

    /// Returns why the lease is lost by now, if it is.
    fn loss(&self, now: LeaseInstant) -> Option<LossReason> {
        let Phase::Held(grant) = &self.phase else { return None };
        let within = self.times.renew_deadline;
        let passed = now.since(grant.sent);
        let suspended = now.suspended_since(grant.sent);
        if passed < within {
            None
        } else if passed.saturating_sub(suspended) < within {
            Some(LossReason::Suspended { suspended })
        } else {
            Some(LossReason::NotRenewed { within, problem: grant.problem.clone() })
        }
    }

    /// Returns the request that is due, and notes it as in flight.
    fn send(&mut self, now: LeaseInstant) -> Option<GuardRequest> {
        let mut until = later(now.at(), self.times.request_timeout());
        let (request, wait) = match &mut self.phase {
            Phase::Standby => (GuardRequest::Acquire, self.times.next_poll(&mut self.random)),
            Phase::TooLate(grant) => {
                (GuardRequest::Release(grant.token), self.times.next_poll(&mut self.random))
            }
            Phase::Held(grant) => {
                (GuardRequest::Renew(grant.token), self.times.next_retry(&mut self.random))
            }
            Phase::Releasing(Release { token, until: end, left, .. }) => {
                // Each attempt has the same part of the time that is left.
                let wait = end.saturating_duration_since(now.at()) / (*left).max(1);
                until = later(now.at(), wait);
                *left = left.saturating_sub(1);
                (GuardRequest::Release(*token), wait)
            }
            Phase::LastAnswer { .. } | Phase::Done => return None,
        };
        self.next = later(now.at(), wait);
        self.in_flight = Some(InFlight { sent: now, until });
        Some(request)
    }

    /// Returns when to look again. `None`: there is nothing left to do.
    fn deadline(&self, now: LeaseInstant) -> Option<Instant> {
        let next = self.in_flight.map_or(self.next, |InFlight { until, .. }| until);
        match &self.phase {
            Phase::Standby => {
                let said = self.failing.as_ref().map(|failing| failing.said);
                Some(said.map_or(next, |said| said.min(next)))
            }
            Phase::TooLate(_) => Some(next),
            Phase::LastAnswer { until } | Phase::Releasing(Release { until, .. }) => {
                Some(next.min(*until))
            }
            Phase::Held(grant) => {
                let lost = later(grant.sent.at(), self.times.renew_deadline);
                Some(next.min(lost).min(later(now.at(), LOOK)))
            }
            Phase::Done => None,
        }
    }
}
