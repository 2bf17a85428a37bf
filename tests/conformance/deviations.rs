//! The known differences between verger and Erlang/OTP, as far as a scenario can show them.
//!
//! Each is a row of the table in the book's *semantics*, word for word, and a matcher that is as
//! narrow as possible. A difference without a matcher is a bug, in verger or here.

use std::fmt;

use crate::compare::{Difference, STEPS_BEFORE};
use crate::scenario::{Scenario, Step, Strategy, is_dynamic, split};

/// An intended difference.
pub(crate) struct Deviation {
    pub(crate) id: &'static str,
    /// The columns of the book's table.
    pub(crate) rule: &'static str,
    pub(crate) otp: &'static str,
    pub(crate) verger: &'static str,
    pub(crate) because: &'static str,
    /// Whether only a call's answer differs, and both trees are the same afterwards.
    pub(crate) goes_on: bool,
    matches: fn(&Scenario, &Difference) -> bool,
}

impl fmt::Debug for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

pub(crate) const DEVIATIONS: &[Deviation] = &[
    Deviation {
        id: "dynamic_child_that_is_gone",
        rule: "call about a dynamic child that is gone",
        otp: "a dead pid passes for a child: `terminate_child` returns `ok`, `get_childspec` the \
              template",
        verger: "not found, as in Elixir",
        because: "a name that was never used and the name of a child that is gone can't be \
                  distinguished",
        goes_on: true,
        matches: |scenario, difference| {
            let (Some(Step::TerminateChild(path)) | Some(Step::ChildSpec(path))) =
                step(scenario, difference)
            else {
                return false;
            };
            let [otp] = &difference.otp[..] else { return false };
            is_dynamic(split(path).0)
                && (otp == "reply ok" || otp.split(' ').count() == 5)
                && difference.verger == ["reply not_found"]
        },
    },
    Deviation {
        id: "dynamic_child_calls",
        rule: "`restart_child`, `delete_child` of a dynamic child",
        otp: "refused in every state of the child: `simple_one_for_one`",
        verger: "refused with the state of the child: running, restarting, not found",
        because: "an answer should report the actual state",
        goes_on: true,
        matches: |scenario, difference| {
            let (Some(Step::RestartChild(path)) | Some(Step::DeleteChild(path))) =
                step(scenario, difference)
            else {
                return false;
            };
            let refused = ["reply running", "reply restarting", "reply not_found"];
            is_dynamic(split(path).0)
                && difference.otp == ["reply simple_one_for_one"]
                && refused.iter().any(|it| difference.verger == [*it])
        },
    },
    Deviation {
        id: "failure_in_a_group_restart",
        rule: "a failure during a group restart",
        otp: "while the others stop: absorbed, not charged; later: one more group restart",
        verger: "the same while the range stops; otherwise merged into the one operation, with \
                 the larger range and the later deadline",
        because: "a group restart waits here, unlike in OTP, and a failure during the wait must neither \
                  be lost nor restart twice",
        goes_on: false,
        matches: |scenario, difference| {
            let Some(Step::Ends(ends)) = step(scenario, difference) else { return false };
            let parent = split(&ends[0].0).0;
            ends.len() > 1
                && scenario.strategy(parent) == Some(Strategy::RestForOne)
                && starts_twice(parent, &difference.otp)
        },
    },
    Deviation {
        id: "failure_while_a_child_starts",
        rule: "start of a child",
        otp: "runs inside the supervisor, which serves nothing meanwhile; a stop waits for it",
        verger: "runs in the child's task; the supervisor serves calls, and a stop cancels the start",
        because: "a slow start must not block a tree",
        goes_on: false,
        matches: |scenario, difference| {
            let Some(Step::Ends(ends)) = step(scenario, difference) else { return false };
            let parent = split(&ends[0].0).0;
            let failed = |(path, _): &(String, _)| difference.otp.contains(&format!("try {path}"));
            ends.len() > 1
                && (ends.iter().any(failed) || differs_by_cancelled_starts(parent, difference))
        },
    },
];

/// Returns the deviation that explains a difference.
pub(crate) fn explains(scenario: &Scenario, it: &Difference) -> Option<&'static Deviation> {
    DEVIATIONS.iter().find(|deviation| (deviation.matches)(scenario, it))
}

fn step<'a>(scenario: &'a Scenario, difference: &Difference) -> Option<&'a Step> {
    scenario.steps.get(difference.step.checked_sub(STEPS_BEFORE)?)
}

/// Returns whether a line is about a descendant of a supervisor.
fn is_below(parent: &str, line: &str) -> bool {
    let path = line.split(' ').nth(1).unwrap_or_default();
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a child of `parent` is started, and then stopped or started again.
fn starts_twice(parent: &str, lines: &[String]) -> bool {
    let mut started = Vec::new();
    let mut unordered = Vec::new();
    for line in lines {
        let mut words = line.split(' ');
        let (Some(word), Some(path)) = (words.next(), words.next()) else { continue };
        if split(path).0 != parent {
            continue;
        }
        match word {
            "start" | "try" if started.contains(&path) => return true,
            "stop" if started.contains(&path) => return true,
            "start" | "try" => started.push(path),
            // In unordered lines, the first may precede the start.
            "end" | "kill" | "init" | "down" => {
                let end = if word == "init" { "start" } else { "end" };
                if unordered.contains(&(end, path)) {
                    return true;
                }
                unordered.push((end, path));
            }
            _ => {}
        }
    }
    false
}

/// Returns whether `parent` has ended in both traces, and verger has started no more than OTP below
/// it.
fn differs_by_cancelled_starts(parent: &str, difference: &Difference) -> bool {
    let (ours, theirs) = (&difference.verger, &difference.otp);
    let above = |lines: &[String]| {
        let lines = lines.iter().filter(|line| !is_below(parent, line)).cloned();
        lines.collect::<Vec<_>>()
    };
    let mut left = theirs.clone();
    let mut below = ours.iter().filter(|line| is_below(parent, line)).map(|line| {
        let found = left.iter().position(|it| it == line);
        found.map(|index| left.swap_remove(index))
    });
    theirs.contains(&format!("down {parent} clean"))
        && above(theirs) == above(ours)
        && below.all(|found| found.is_some())
}

#[test]
fn each_deviation_is_a_row_of_the_books_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/semantics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split_once("\n## Where verger differs from Erlang/OTP, and why\n").unwrap().1;
    for Deviation { id, rule, otp, verger, because, .. } in DEVIATIONS {
        let row = format!("| {rule} | {otp} | {verger} | {because} |");
        assert!(table.lines().any(|line| line == row), "{id}: the book lacks\n{row}");
    }
}
