//! The programs of the documents that these policies come from, beside the documents' figures. elfo's is in
//! `configuration/documents.rs`.

use std::time::Duration;

use tokio::time::Instant;
use verger::policy::Preset;
use verger::{Backoff, Child, Context, Exit, Supervisor, async_trait, child};

use crate::gives_up_after;

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each has its timeline, which isn't printed here"
)]
#[path = "../../examples/documents/backoff_policies.rs"]
mod backoff_policies;
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each has its timeline, which isn't printed here"
)]
#[path = "../../examples/documents/backoff_sender.rs"]
mod backoff_sender;
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each has its timeline, which isn't printed here"
)]
#[path = "../../examples/documents/backoff_supervisor.rs"]
mod backoff_supervisor;
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each has its timeline, which isn't printed here"
)]
#[path = "../../examples/documents/supervision_tree.rs"]
mod supervision_tree;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The lines of a program, of which `what` is said at each of these times.
fn at<'a>(times: impl IntoIterator<Item = Duration> + 'a, what: &'a str) -> Vec<String> {
    times.into_iter().map(|time| format!("{time:?}: {what}")).collect()
}

/// "The supervisor spawns a child, reschedules its restart with an exponential backoff (200 ms, 400, 800, …), buffers
/// messages arriving during the backoff window."
#[tokio::test(start_paused = true)]
async fn document_0_a_backoff_supervisor_waits_until_its_child_can_start_and_keeps_its_messages() {
    let lines = backoff_supervisor::alone().await.unwrap();
    let expected = [
        "0ns: start 1",
        "200ms: start 2",
        "600ms: start 3",
        "1.4s: start 4",
        "1.4s: ok",
        "1.4s: active",
        "2.4s: ok",
    ];
    assert_eq!(lines, expected);
}

/// "Back off between restarts, but give up entirely after 10 attempts": `{ maxRetries: 10 }` without a time range.
///
/// Rule: seed0.53
#[tokio::test(start_paused = true)]
async fn document_0_together_with_a_limit_of_ten_it_gives_up_a_child_that_cannot_start() {
    let mut lines = backoff_supervisor::with_max_retries().await.unwrap();
    // minBackoff 200, doubled each time, clamped at maxBackoff 10_000.
    let (mut time, mut delay) = (Duration::ZERO, ms(200));
    for start in 1..=11 {
        assert_eq!(lines.remove(0), format!("{time:?}: start {start}"));
        if start < 11 {
            time += delay;
            delay = (2 * delay).min(ms(10_000));
        }
    }
    let end = "`flaky-supervisor` gave up on `flaky-supervisor/flaky`: activation failed: upstream not ready";
    assert_eq!(lines, at([time], end));
}

/// `min × 2^n` clamped to `max`, multiplied by `1 + random(-randomFactor, +randomFactor)`.
#[test]
fn document_1_the_tables_of_both_policies_are_those_of_the_document() {
    let table = |numbers: &[u64], percent: u64| {
        numbers.iter().map(|it| ms(it * percent / 100)).collect::<Vec<_>>()
    };
    let exponential = [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
    let linear = [500, 1_000, 1_500, 2_000, 4_500, 5_000, 5_000];
    for (random, percent) in [(0.5, 100), (0.0, 80), (0.75, 110)] {
        assert_eq!(
            backoff_policies::exponential_table(move || random),
            table(&exponential, percent)
        );
        assert_eq!(backoff_policies::linear_table(move || random), table(&linear, percent));
    }
}

/// "A linear congruential generator is good enough for tests."
#[test]
fn document_1_with_a_random_source_the_delays_are_reproducible() {
    let mut seed = 0_u64;
    let expected: Vec<f64> = [100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0, 6_400.0, 10_000.0]
        .into_iter()
        .map(|base| {
            seed = (seed * 9301 + 49297) % 233_280;
            base * (1.0 + 0.2 * (2.0 * (seed as f64 / 233_280.0) - 1.0))
        })
        .collect();
    let delays = backoff_policies::reproducible();
    assert_eq!(delays.len(), expected.len());
    for (delay, expected) in delays.iter().zip(expected) {
        let difference = delay.as_secs_f64() * 1_000.0 - expected;
        assert!(difference.abs() < 0.000_002, "{delay:?} and {expected} ms");
    }
    assert_eq!(delays, backoff_policies::reproducible());
}

#[test]
fn document_1_a_custom_policy_is_a_function_of_the_count() {
    let fibonacci = [100, 100, 200, 300, 500, 800, 1_300, 2_100, 3_400, 5_000, 5_000];
    assert_eq!(backoff_policies::fibonacci(), fibonacci.map(ms));
}

#[tokio::test(start_paused = true)]
async fn document_1_a_policy_is_of_use_without_a_supervisor() {
    let mut lines = backoff_policies::standalone().await;
    assert_eq!(lines.pop().unwrap(), "6.2s: refused");
    assert_eq!(lines, at([0, 200, 600, 1_400, 3_000].map(ms), "someRiskyCall"));
}

/// The wait of slot n is `slotTime * (2^n - 1)` at most; at the ceiling the algorithm starts again, without a wait; an
/// acknowledgement resets it.
#[tokio::test(start_paused = true)]
async fn document_2_the_sender_waits_for_longer_slots_up_to_the_ceiling_and_an_ack_resets_them() {
    let lines = backoff_sender::slots_ceiling_and_reset().await.unwrap();
    let (mut time, mut crashes) = (Duration::ZERO, vec![Duration::ZERO]);
    for slot in 1..10 {
        time += ms(10) * (2_u32.pow(slot) - 1);
        crashes.push(time);
    }
    // `slot >= ceiling && !stayAtCeiling`: reset(), whose waitTime is zero.
    crashes.push(time);
    let mut expected = at(crashes, "tea: crash");
    let sent = time + ms(10);
    for what in ["tea: sent", "TEA", "milk: crash"] {
        expected.extend(at([sent], what));
    }
    for what in ["milk: sent", "MILK"] {
        expected.extend(at([sent + ms(10)], what));
    }
    assert_eq!(lines, expected);
}

/// "A good solution for this is to max the possiblyFailed vector and remove the oldest entries."
#[tokio::test(start_paused = true)]
async fn document_2_the_oldest_message_without_room_is_a_dead_letter() {
    let lines = backoff_sender::dead_letters().await.unwrap();
    let mut expected = at([0, 10, 40].map(ms), "milk: crash");
    let ended = [
        "milk: sent",
        "sugar: sent",
        "tea: the question to `sender/dangerous` was not delivered: mailbox_full",
        "MILK",
        "SUGAR",
        "dead letter: mailbox_full",
    ];
    ended.into_iter().for_each(|what| expected.extend(at([ms(110)], what)));
    assert_eq!(lines, expected);
}

/// "if isinstance(error, ConnectionError) and attempt >= 2: context.update_properties(..)", with base_delay=2.0.
#[tokio::test(start_paused = true)]
async fn document_3_the_callback_gives_a_component_a_fallback_at_its_second_attempt() {
    let lines = supervision_tree::fallback().await.unwrap();
    let expected = [
        "0ns: worker-b: no connection to api.example.com",
        "0ns: Child worker-b failed (attempt 1): activation failed: ConnectionError; 0 in the window, one_for_one",
        "2s: worker-b: no connection to api.example.com",
        "2s: Child worker-b failed (attempt 2): activation failed: ConnectionError; 1 in the window, one_for_one",
        "6s: worker-b: active with fallback.example.com",
    ];
    assert_eq!(lines, expected);
}

/// max_restarts=3 in within_seconds=60, with delays of 2, 4 and 8 s: the pipeline escalates after 14 s. Its root tries it
/// three times more, after 1, 2 and 4 s, and leaves it errored. A call brings it back.
///
/// Rule: seed3.25
#[tokio::test(start_paused = true)]
async fn document_3_a_pipeline_escalates_stays_errored_and_is_retried_by_hand() {
    let lines = supervision_tree::escalation().await.unwrap();
    let mut expected = Vec::new();
    for began in [0, 14 + 1, 2 * 14 + 3, 3 * 14 + 7] {
        expected.extend(at([secs(began)], "fetcher: active with api.example.com"));
        let attempts = [0, 2, 2 + 4, 2 + 4 + 8].map(|after| secs(began + after));
        expected.extend(at(attempts, "processor: no connection to api.example.com"));
    }
    let (ended, hour_later) = (secs(4 * 14 + 7), secs(4 * 14 + 7 + 3_600));
    expected.extend(at([ended, hour_later], "data-pipeline: ERRORED"));
    for what in [
        "kernel.retry_erroneous(\"data-pipeline\")",
        "fetcher: active with api.example.com",
        "processor: active with api.example.com",
        "writer: active with api.example.com",
        "data-pipeline: ACTIVE",
    ] {
        expected.extend(at([hour_later], what));
    }
    assert_eq!(lines, expected);
}

/// Fails to start until this incarnation.
struct Flaky {
    works_from: u32,
}

#[async_trait]
impl Child for Flaky {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() < self.works_from {
            return Err("connect ECONNREFUSED".into());
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

/// A written `false` overrides a preset that charges everything.
#[tokio::test(start_paused = true)]
async fn a_written_false_spares_starts_that_fail_under_a_preset_that_charges_them() {
    let app = |count: Option<bool>| {
        let app = Supervisor::builder("app").preset(Preset::oversight());
        let app = app.defaults(|child| child.backoff(Backoff::constant(secs(1))));
        let app = app.restarts(3, secs(60)).child(child("db", || Flaky { works_from: 100 }));
        match count {
            Some(count) => app.count_failed_starts(count),
            None => app,
        }
    };
    assert_eq!(gives_up_after(app(None)).await.0, secs(3));
    assert_eq!(gives_up_after(app(Some(true))).await.0, secs(3));
    let began = Instant::now();
    let app = app(Some(false)).build().unwrap().start().await.unwrap();
    assert_eq!(began.elapsed(), secs(99));
    app.stop("the test is over").await.unwrap();
}
