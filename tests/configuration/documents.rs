//! The program of elfo's documentation, beside the document's figures. Those of the other documents are in
//! `policies/documents.rs`.

#[allow(dead_code, reason = "the timelines are compared, and not printed")]
#[path = "../../examples/documents/restart_policies.rs"]
mod restart_policies;

/// The lines about one group.
fn of<'a>(lines: &'a [String], group: &str) -> Vec<&'a str> {
    lines.iter().map(String::as_str).filter(|line| line.contains(group)).collect()
}

/// `min(min_backoff * pow(factor, power), max_backoff)`: [4, 8, 16, 32, 36] in the blueprint, [5, 10, 20, 30] in the file.
#[tokio::test(start_paused = true)]
async fn document_4_each_group_restarts_by_its_policy() {
    let lines = restart_policies::restarts().await.unwrap();
    // `Never`: nothing for a second, then another actor for the next message.
    let of_a =
        ["0ns: group_a starts, limit 0", "0ns: group_a crashes", "1s: group_a starts, limit 0"];
    assert_eq!(of(&lines, "group_a"), of_a);

    let mut of_c = Vec::new();
    let mut time = 2;
    for delay in [4, 8, 16, 32, 36, 36] {
        of_c.push(format!("{time}s: group_c starts, limit 0"));
        of_c.push(format!("{time}s: group_c crashes"));
        time += delay;
    }
    of_c.push(format!("{time}s: group_c starts, limit 0"));
    of_c.push(format!("{}s: group_c: stopped", time + 100));
    assert_eq!(of(&lines, "group_c"), of_c);

    let began = time + 100;
    let crash = |after: u64| {
        let at = began + after;
        [format!("{at}s: group_b starts, limit 0"), format!("{at}s: group_b crashes")]
    };
    let mut of_b = [0, 5, 15, 35, 65].map(crash).concat();
    let start = |after: u64| format!("{}s: group_b starts, limit 0", began + after);
    let crashes = |after: u64| format!("{}s: group_b crashes", began + after);
    // Healthy for `auto_reset`: immediately, then 5 s, then 10 s; `always` also restarts after a clean end.
    of_b.extend([start(95), crashes(100), start(100), crashes(100), start(105), start(115)]);
    // Its own policy, `never`, holds for one lifecycle. The one that a message starts has the group's again.
    of_b.extend([crashes(130), start(140)]);
    of_b.push(format!("{}s: group_b has worked", began + 145));
    of_b.extend([crashes(145), start(145)]);
    // `None` restores the group's policy.
    of_b.extend([crashes(170), start(170)]);
    of_b.push(format!("{}s: group_b: Terminate", began + 200));
    of_b.push(format!("{}s: group_b: recv() is None", began + 200));
    assert_eq!(of(&lines, "group_b"), of_b);
}

#[tokio::test(start_paused = true)]
async fn document_4_after_twenty_retries_an_actor_is_not_restarted() {
    let waits = 5 + 10 + 20 + 17 * 30;
    let lines = restart_policies::max_retries().await.unwrap();
    assert_eq!(lines, [format!("{waits}s: group_b: stopped after 21 starts")]);
}

#[tokio::test(start_paused = true)]
async fn document_4_a_reload_is_accepted_or_refused_as_a_whole_and_a_forced_one_reaches_all() {
    let lines = restart_policies::reloads().await.unwrap();
    let (wrong, right): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.contains("Sometimes"));
    let [wrong] = &wrong[..] else { panic!("{lines:#?}") };
    let reason = "4s: SIGHUP: elfo.toml:17:30: unknown restart type `Sometimes`; write `permanent`, `always`,";
    assert!(wrong.starts_with(reason), "{wrong}");
    let expected = [
        "0ns: group_a starts, limit 0",
        "0ns: group_a has worked",
        "0ns: group_b starts, limit 0",
        "0ns: group_b has worked",
        "0ns: group_c starts, limit 0",
        "0ns: group_c has worked",
        "1s: group_c: UpdateConfig, limit 7",
        "1s: SIGHUP: 1 change, 2 unchanged",
        "2s: SIGHUP: up to date",
        "3s: SIGHUP: refused by `system/group_c` (elfo.toml:17): ValidateConfig: 13 is unlucky",
        "5s: SIGHUP: 1 change, 2 unchanged",
        "6s: group_a: UpdateConfig, limit 0",
        "6s: group_b: UpdateConfig, limit 0",
        "6s: group_c: UpdateConfig, limit 7",
        "6s: SIGUSR2: 3 changes, 0 unchanged",
    ];
    assert_eq!(right[..expected.len()], expected.iter().collect::<Vec<_>>());
}

/// `closing`: `recv()` is `None` after the stored messages. `manually`: `Terminate`, and closed after 30 s. After another
/// 15 s nothing waits any more.
#[tokio::test(start_paused = true)]
async fn document_4_a_group_terminates_by_its_policy_within_30_and_15_seconds() {
    let lines = restart_policies::termination().await.unwrap();
    let expected = [
        "1s: closing#1 starts, limit 0",
        "1s: manually#2 starts, limit 0",
        "1s: manually#2 has worked",
        "1s: stuck#3 starts, limit 0",
        "1.5s: SIGTERM",
        "1.5s: manually#2: Terminate",
        "2s: closing#1 has worked",
        "2s: closing#1: Terminate",
        "3s: closing#1 has worked",
        "3s: closing#1: recv() is None",
        "31.5s: manually#2: recv() is None",
        "46.5s: stopped, but killed at the end of their grace: `system/stuck#3`",
    ];
    assert_eq!(lines, expected);
}
