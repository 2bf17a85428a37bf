//! What has happened in all processes of a check, by the clock that they share.
//!
//! A member writes a line for each thing that it does, with `CLOCK_MONOTONIC` in nanoseconds. This clock is the same in
//! all processes of a machine, so the lines of different members can be compared.

use std::fmt;
use std::time::Duration;

/// An instant of the shared clock, in nanoseconds.
pub(crate) type Nanos = u64;

/// Returns the shared clock.
pub(crate) fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let since_boot = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32);
    since_boot.as_nanos() as Nanos
}

/// A line of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The member has started, and ends in order if it is asked to.
    Ready { at: Nanos },
    /// The engine has granted the lease.
    Granted { sent: Nanos, answered: Nanos, token: u64 },
    /// The worker runs. `asked`: before its first write, which the resource has accepted by `at`.
    Start { asked: Nanos, at: Nanos, token: u64 },
    /// The worker has ended, or was dropped.
    End { at: Nanos, token: u64 },
    /// The resource has refused a write.
    Refused { sent: Nanos, token: u64 },
    /// A write has no answer in time. Whether the resource has accepted it is in the resource.
    Unanswered { sent: Nanos, token: u64 },
    /// The member has found that it did nothing in this time.
    Stalled { from: Nanos, to: Nanos },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ready { at } => write!(f, "ready {at}"),
            Self::Granted { sent, answered, token } => {
                write!(f, "granted {sent} {answered} {token}")
            }
            Self::Start { asked, at, token } => write!(f, "start {asked} {at} {token}"),
            Self::End { at, token } => write!(f, "end {at} {token}"),
            Self::Refused { sent, token } => write!(f, "refused {sent} {token}"),
            Self::Unanswered { sent, token } => write!(f, "unanswered {sent} {token}"),
            Self::Stalled { from, to } => write!(f, "stalled {from} {to}"),
        }
    }
}

impl Line {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (what, numbers) = text.split_once(' ')?;
        let numbers: Result<Vec<u64>, _> = numbers.split(' ').map(str::parse).collect();
        Some(match (what, &*numbers.ok()?) {
            ("ready", &[at]) => Self::Ready { at },
            ("granted", &[sent, answered, token]) => Self::Granted { sent, answered, token },
            ("start", &[asked, at, token]) => Self::Start { asked, at, token },
            ("end", &[at, token]) => Self::End { at, token },
            ("refused", &[sent, token]) => Self::Refused { sent, token },
            ("unanswered", &[sent, token]) => Self::Unanswered { sent, token },
            ("stalled", &[from, to]) => Self::Stalled { from, to },
            _ => return None,
        })
    }

    /// When it happened.
    pub(crate) fn at(self) -> Nanos {
        match self {
            Self::Ready { at }
            | Self::Granted { answered: at, .. }
            | Self::Start { at, .. }
            | Self::End { at, .. }
            | Self::Refused { sent: at, .. }
            | Self::Unanswered { sent: at, .. }
            | Self::Stalled { to: at, .. } => at,
        }
    }
}

/// A grant of the lease to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) member: u32,
    pub(crate) sent: Nanos,
    pub(crate) answered: Nanos,
    pub(crate) token: u64,
}

/// One run of the worker of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) member: u32,
    pub(crate) token: u64,
    /// Before its first write.
    pub(crate) asked: Nanos,
    /// After that was accepted.
    pub(crate) started: Nanos,
    /// `None`: it runs at the end of the history.
    pub(crate) ended: Option<Nanos>,
}

/// A write that the resource has refused, or hasn't answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) member: u32,
    pub(crate) token: u64,
    pub(crate) sent: Nanos,
}

/// A time in which a member did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) member: u32,
    pub(crate) from: Nanos,
    /// `None`: until the end of the history.
    pub(crate) to: Option<Nanos>,
}

/// A write that the resource has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) member: u32,
    pub(crate) token: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) grants: Vec<Grant>,
    pub(crate) runs: Vec<Run>,
    pub(crate) refusals: Vec<Attempt>,
    pub(crate) unanswered: Vec<Attempt>,
    pub(crate) pauses: Vec<Pause>,
    /// In the order of the resource.
    pub(crate) writes: Vec<Write>,
    /// The members that have started.
    pub(crate) ready: Vec<u32>,
    /// Every line as it was written, for the report of a violation.
    pub(crate) lines: Vec<(Nanos, u32, String)>,
    /// Lines that no member should write, such as those of a panic.
    pub(crate) unexpected: Vec<String>,
}

impl History {
    /// Adds a line of a member.
    pub(crate) fn add(&mut self, member: u32, text: &str) {
        let Some(line) = Line::parse(text) else {
            self.unexpected.push(format!("member {member}: {text}"));
            return;
        };
        self.lines.push((line.at(), member, text.to_owned()));
        match line {
            Line::Ready { .. } => self.ready.push(member),
            Line::Granted { sent, answered, token } => {
                self.grants.push(Grant { member, sent, answered, token });
            }
            Line::Start { asked, at, token } => {
                self.runs.push(Run { member, token, asked, started: at, ended: None });
            }
            Line::End { at, token } => self.end(member, Some(token), at),
            Line::Refused { sent, token } => self.refusals.push(Attempt { member, token, sent }),
            Line::Unanswered { sent, token } => {
                self.unanswered.push(Attempt { member, token, sent });
            }
            Line::Stalled { from, to } => self.pauses.push(Pause { member, from, to: Some(to) }),
        }
    }

    /// Notes what the test does to a member.
    pub(crate) fn note(&mut self, member: u32, what: &str) -> Nanos {
        let at = now();
        self.lines.push((at, member, format!("-- {what}")));
        at
    }

    pub(crate) fn paused(&mut self, member: u32) {
        let from = self.note(member, "SIGSTOP");
        self.pauses.push(Pause { member, from, to: None });
    }

    pub(crate) fn resumed(&mut self, member: u32) {
        let to = self.note(member, "SIGCONT");
        let open = self.pauses.iter_mut().filter(|it| it.member == member && it.to.is_none());
        open.for_each(|it| it.to = Some(to));
    }

    /// Ends the run of a member that was killed after this moment. All its lines must have been read by now.
    pub(crate) fn killed(&mut self, member: u32, at: Nanos) {
        self.end(member, None, at);
    }

    fn end(&mut self, member: u32, token: Option<u64>, at: Nanos) {
        let of = |it: &&mut Run| it.member == member && token.is_none_or(|token| it.token == token);
        if let Some(run) = self.runs.iter_mut().rev().find(of) {
            // A line that a killed member had written before.
            run.ended = Some(run.ended.map_or(at, |it| it.min(at)));
        }
    }
}
