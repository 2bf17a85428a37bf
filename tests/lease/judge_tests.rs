//! The judge, on histories that are written down here. Times are milliseconds.

use crate::shared::checker::history::{History, Write};
use crate::shared::checker::judge::{Violation, judge};

/// Reads lines `MEMBER WHAT NUMBERS`, with the accepted writes as `MEMBER wrote TOKEN` in their order.
fn history(text: &str) -> History {
    let mut history = History::default();
    for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (member, line) = line.split_once(' ').unwrap();
        let member = member.parse().unwrap();
        let words: Vec<_> = line.split(' ').collect();
        if let ["wrote", token] = words[..] {
            history.writes.push(Write { member, token: token.parse().unwrap() });
            continue;
        }
        // The last number is a token, but for a pause.
        let times = if words[0] == "stalled" { words.len() } else { words.len() - 1 };
        let in_nanos = |(at, word): (usize, &&str)| match word.parse::<u64>() {
            Ok(millis) if at < times => (millis * 1_000_000).to_string(),
            _ => (*word).to_owned(),
        };
        let line: Vec<_> = words.iter().enumerate().map(in_nanos).collect();
        history.add(member, &line.join(" "));
    }
    assert_eq!(history.unexpected, Vec::<String>::new());
    history
}

fn why(text: &str) -> &'static str {
    match judge(&history(text))[..] {
        [Violation::Overlap { why, .. }] => why,
        ref other => panic!("{other:?}"),
    }
}

fn is_accepted(text: &str) {
    assert_eq!(judge(&history(text)), []);
}

#[test]
fn a_hand_over_is_no_overlap() {
    is_accepted(
        "1 granted 0 1 7
         1 start 2 3 7
         1 end 100 7
         2 granted 100 101 8
         2 start 102 103 8
         1 wrote 7
         1 wrote 7
         2 wrote 8",
    );
}

#[test]
fn an_overlap_without_a_pause_is_found() {
    let text = "1 start 2 3 7
                2 start 90 91 8
                1 refused 95 7
                1 end 100 7";
    assert_eq!(why(text), "the older one was never paused");
    // A pause of a different member, a short one, and one that was over long before.
    for pause in ["2 stalled 5 89", "1 stalled 5 15"] {
        assert_eq!(why(&format!("{text}\n{pause}")), "the older one was never paused");
    }
    let late = "1 start 2 3 7
                1 stalled 5 900
                2 start 2000 2001 8
                1 refused 2010 7
                1 end 2020 7";
    assert_eq!(why(late), "the older one was never paused");
}

#[test]
fn an_older_run_that_is_refused_after_a_pause_is_excused() {
    is_accepted(
        "1 start 2 3 7
         1 stalled 10 1500
         2 start 1100 1101 8
         1 refused 1501 7
         1 end 1502 7",
    );
    // Killed in its pause.
    let mut killed = history("1 start 2 3 7\n2 start 1100 1101 8");
    killed.paused(1);
    killed.pauses[0].from = 10_000_000;
    assert_eq!(judge(&killed), [], "it is paused at the end");
    killed.runs[0].ended = Some(1_500_000_000);
    killed.pauses[0].to = Some(1_600_000_000);
    assert_eq!(judge(&killed), []);
}

#[test]
fn an_older_run_whose_writes_go_unrefused_is_found() {
    let text = "1 start 2 3 7
                1 stalled 10 1500
                2 start 1100 1101 8
                1 end 1502 7";
    assert_eq!(why(text), "the resource has refused no write of the older one");
    is_accepted(&format!("{text}\n1 unanswered 1501 7"));
}

#[test]
fn an_older_run_that_goes_on_is_found() {
    let text = "1 start 2 3 7
                1 stalled 10 1500
                2 start 1100 1101 8
                1 refused 1501 7
                1 end 2400 7";
    assert_eq!(why(text), "the older one went on after its pause");
    // In pieces, too: only the time between its pauses counts.
    let again = format!("{text}\n1 stalled 1600 2300");
    is_accepted(&again);
    let text = text.replace("1 end 2400 7", "");
    assert_eq!(why(&text), "the older one went on after its pause");
}

#[test]
fn a_token_that_does_not_grow_is_found() {
    let grown = |earlier, later| Violation::TokenNotGrown { earlier, later };
    let again = "1 granted 0 1 7\n2 granted 2 3 7";
    assert_eq!(judge(&history(again)), [grown((1, 7), (2, 7))]);
    let lower = "1 granted 0 1 7\n3 granted 1 2 6\n2 granted 2 3 5";
    // The second request was sent before the first answer.
    assert_eq!(judge(&history(lower)), [grown((1, 7), (2, 5))]);
    is_accepted("1 granted 0 5 8\n2 granted 1 4 7\n1 granted 6 7 9");
}

#[test]
fn a_token_of_two_runs_is_found() {
    let text = "1 start 0 1 7\n1 end 2 7\n2 start 3 4 7\n2 end 5 7";
    let found = judge(&history(text));
    assert_eq!(found, [Violation::TokenOfTwoRuns { token: 7, members: (1, 2) }]);
}

#[test]
fn a_write_that_goes_back_is_found() {
    let found = judge(&history("1 wrote 7\n2 wrote 8\n1 wrote 7\n2 wrote 8"));
    let (from, to) = (Write { member: 2, token: 8 }, Write { member: 1, token: 7 });
    assert_eq!(found, [Violation::WentBack { at: 2, from, to }]);
}

#[test]
fn a_run_ends_when_its_member_is_killed() {
    let mut history = history("1 start 2 3 7\n1 end 4 7\n1 start 12 13 8");
    history.killed(1, 20_000_000);
    let ends: Vec<_> = history.runs.iter().map(|it| it.ended).collect();
    assert_eq!(ends, [Some(4_000_000), Some(20_000_000)]);
    history.killed(1, 30_000_000);
    assert_eq!(history.runs[1].ended, Some(20_000_000), "it had ended before");
}

#[test]
fn a_line_that_no_member_writes_is_found() {
    let mut history = History::default();
    history.add(3, "thread 'main' panicked");
    let text = "member 3: thread 'main' panicked".to_owned();
    assert_eq!(judge(&history), [Violation::Unexpected(text)]);
}
