//! Finds what must not happen in a history. Pure.
//!
//! # Rules
//!
//! 1. No two runs overlap. One exception: the member of the older token had been paused, so it couldn't know. Then each
//!    of its writes in the overlap was refused or not answered, at least one was made, and it ends soon after its pause.
//! 2. Tokens strictly grow: a grant that was requested after the answer of a different one has a higher token.
//! 3. Accepted writes never go back to an older token.
//! 4. Each run has a token of its own.
//!
//! The third rule also says that no write of an older token is accepted in an overlap, answered or not: the first write of a run is
//! accepted before the run counts as started.

use std::fmt;
use std::time::Duration;

use super::TTL;
use super::history::{Attempt, History, Nanos, Run, Write};

/// A shorter pause can't be the cause of an overlap: a member has more time than this left when it is down in time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// How long a member whose lease is lost may go on after a pause: its grace, and what a busy machine adds.
const ENDS_WITHIN: Duration = Duration::from_millis(800);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    Overlap { older: Run, newer: Run, why: &'static str },
    TokenNotGrown { earlier: (u32, u64), later: (u32, u64) },
    WentBack { at: usize, from: Write, to: Write },
    TokenOfTwoRuns { token: u64, members: (u32, u32) },
    Unexpected(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { older, newer, why } => write!(
                f,
                "members {} (token {}) and {} (token {}) ran at the same time, from {}, and {why}",
                older.member, older.token, newer.member, newer.token, newer.started
            ),
            Self::TokenNotGrown { earlier, later } => {
                write!(f, "{later:?} (member, token) was granted after {earlier:?}")
            }
            Self::WentBack { at, from, to } => {
                write!(f, "write {at} is of {to:?}, after one of {from:?}")
            }
            Self::TokenOfTwoRuns { token, members } => {
                write!(f, "token {token} has two runs, of members {members:?}")
            }
            Self::Unexpected(line) => f.write_str(line),
        }
    }
}

/// Returns all violations of the [rules](self).
pub(crate) fn judge(history: &History) -> Vec<Violation> {
    let mut found: Vec<_> = history.unexpected.iter().cloned().map(Violation::Unexpected).collect();
    found.extend(overlaps(history));
    found.extend(tokens(history));
    let writes = history.writes.windows(2).enumerate();
    let back = writes.filter(|(_, pair)| pair[1].token < pair[0].token);
    found.extend(back.map(|(at, pair)| Violation::WentBack {
        at: at + 1,
        from: pair[0],
        to: pair[1],
    }));
    found
}

fn overlaps(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut runs = history.runs.clone();
    runs.sort_by_key(|it| it.token);
    for (number, older) in runs.iter().enumerate() {
        for newer in &runs[number + 1..] {
            if older.token == newer.token {
                let members = (older.member, newer.member);
                found.push(Violation::TokenOfTwoRuns { token: older.token, members });
            }
            // The newer run may have ended before the older one has begun to ask: then its token has not grown.
            let overlaps = older.ended.is_none_or(|ended| ended > newer.started)
                && newer.ended.is_none_or(|ended| ended > older.asked);
            if overlaps && let Err(why) = excused(older, newer, history) {
                found.push(Violation::Overlap { older: *older, newer: *newer, why });
            }
        }
    }
    found
}

/// Returns why an overlap is a violation of the first rule, if it is.
fn excused(older: &Run, newer: &Run, history: &History) -> Result<(), &'static str> {
    let (began, ended) = (newer.started.max(older.asked), older.ended.unwrap_or(Nanos::MAX));
    let is_cause = |&&(from, to): &&(Nanos, Nanos)| {
        to - from >= nanos(SHORTEST_PAUSE)
            && to >= older.asked
            && from < ended
            // Within the last TTL before the newer run started, or later.
            && to.saturating_add(nanos(TTL)) >= newer.started
    };
    let pauses = pauses(older.member, history);
    if !pauses.iter().any(|it| is_cause(&it)) {
        return Err("the older one was never paused");
    }
    let within = |(from, to): &(Nanos, Nanos)| (*to.min(&ended)).saturating_sub(*from.max(&began));
    let awake = (ended - began).saturating_sub(pauses.iter().map(within).sum());
    if awake > nanos(ENDS_WITHIN) {
        return Err("the older one went on after its pause");
    }
    let is_own = |it: &&Attempt| (it.member, it.token) == (older.member, older.token);
    let refused = history.refusals.iter().any(|it| is_own(&it));
    let mut unanswered = history.unanswered.iter().filter(is_own);
    let unanswered = unanswered.any(|it| (began..=ended).contains(&it.sent));
    // It was killed in its pause, or still is paused.
    if awake == 0 || refused || unanswered {
        Ok(())
    } else {
        Err("the resource has refused no write of the older one")
    }
}

/// Returns when a member was paused. What it has found itself and what the test has done to it is the same pause.
fn pauses(member: u32, history: &History) -> Vec<(Nanos, Nanos)> {
    let of_member = history.pauses.iter().filter(|it| it.member == member);
    let mut all: Vec<_> = of_member.map(|it| (it.from, it.to.unwrap_or(Nanos::MAX))).collect();
    all.sort_unstable();
    let mut merged: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

fn tokens(history: &History) -> Vec<Violation> {
    let mut by_answer: Vec<_> = history.grants.iter().collect();
    by_answer.sort_by_key(|it| it.answered);
    let mut by_request = by_answer.clone();
    by_request.sort_by_key(|it| it.sent);
    let (mut answered, mut highest) = (by_answer.into_iter().peekable(), None);
    let mut found = Vec::new();
    for later in by_request {
        while let Some(earlier) = answered.next_if(|it| it.answered < later.sent) {
            if highest.is_none_or(|(_, token)| token < earlier.token) {
                highest = Some((earlier.member, earlier.token));
            }
        }
        if let Some(earlier) = highest.filter(|(_, token)| later.token <= *token) {
            let later = (later.member, later.token);
            found.push(Violation::TokenNotGrown { earlier, later });
        }
    }
    found
}

fn nanos(duration: Duration) -> Nanos {
    duration.as_nanos() as Nanos
}

/// Returns the lines around the first violation, and what was found.
pub(crate) fn explain(found: &[Violation], history: &History) -> String {
    let mut lines = history.lines.clone();
    lines.sort();
    let center = found.iter().find_map(|it| match it {
        Violation::Overlap { newer, .. } => Some(newer.started),
        Violation::TokenNotGrown { later: (_, token), .. }
        | Violation::TokenOfTwoRuns { token, .. } => {
            history.grants.iter().rev().find(|it| it.token == *token).map(|it| it.answered)
        }
        Violation::WentBack { to, .. } => {
            let ended = history.runs.iter().find(|it| it.token == to.token).map(|it| it.ended);
            ended.flatten()
        }
        Violation::Unexpected(_) => None,
    });
    let close = |at: Nanos| center.is_none_or(|center| at.abs_diff(center) < 3 * nanos(TTL));
    let mut text = String::new();
    for violation in found.iter().take(10) {
        text += &format!("{violation}\n");
    }
    text += &format!("{} violations. The history around the first one:\n", found.len());
    for (at, member, line) in lines.iter().filter(|(at, ..)| close(*at)).take(400) {
        text += &format!("{at} {member} {line}\n");
    }
    text
}
