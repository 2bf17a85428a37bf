//! Retries of a call.

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{NoPrices, ms};
use tokio::time::Instant;
use verger::policy::Jitter;
use verger::resilience::{CallError, Retry, RetryError, RetryProblem, retry};
use verger::{Backoff, Context, ExitError, RestartType, Supervisor, worker};

/// The number of calls, and the time of each.
#[derive(Default)]
struct Calls {
    at: Mutex<Vec<u64>>,
    began: Cell<Option<Instant>>,
}

impl Calls {
    /// Returns calls of which the `nth` is the first to succeed.
    fn works_from(&self, nth: usize) -> impl Future<Output = Result<usize, String>> + use<> {
        let began = self.began.get().unwrap_or_else(Instant::now);
        self.began.set(Some(began));
        let mut at = self.at.lock().unwrap();
        at.push(began.elapsed().as_millis() as u64);
        let count = at.len();
        let result = if count >= nth { Ok(count) } else { Err(format!("no {count}")) };
        std::future::ready(result)
    }

    fn at(&self) -> Vec<u64> {
        self.at.lock().unwrap().clone()
    }
}

const NEVER: usize = usize::MAX;

#[tokio::test(start_paused = true)]
async fn kin_165_a_successful_call_is_made_once() {
    let calls = Calls::default();
    assert_eq!(retry(Retry::new().attempts(9), || calls.works_from(1)).await, Ok(1));
    assert_eq!(calls.at(), [0]);
}

#[tokio::test(start_paused = true)]
async fn kin_165_after_the_last_attempt_its_error_is_returned() {
    let calls = Calls::default();
    let result = retry(Retry::new().attempts(3), || calls.works_from(NEVER)).await;
    assert_eq!(result, Err(RetryError::Failed("no 3".to_owned())));
    assert_eq!(calls.at().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn kin_165_without_further_attempts_one_call_is_made() {
    // Pekko counts the attempts after the first.
    let calls = Calls::default();
    assert!(retry(Retry::new().attempts(1), || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn kin_165_a_rejected_value_is_retried() {
    let calls = Calls::default();
    let policy = Retry::new().attempts(9).accept_if(|value| *value >= 3);
    assert_eq!(retry(policy, || calls.works_from(1)).await, Ok(3));

    let calls = Calls::default();
    let policy = Retry::new().attempts(2).accept_if(|value| *value >= 3);
    assert_eq!(retry(policy, || calls.works_from(1)).await, Ok(2), "the last is returned as it is");
}

#[tokio::test(start_paused = true)]
async fn kin_165_an_error_that_is_not_retryable_is_not_retried() {
    let calls = Calls::default();
    let policy = Retry::new().attempts(9).again_if(|error: &String, _| error != "no 2");
    let refused = Err(RetryError::Failed("no 2".to_owned()));
    assert_eq!(retry(policy, || calls.works_from(NEVER)).await, refused);
}

/// A panic isn't an error that a call returns: it propagates.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "of the call itself")]
async fn kin_165_a_panic_of_the_call_reaches_the_caller() {
    let policy: Retry<(), String> = Retry::new().attempts(9);
    let _ = retry(policy, || -> std::future::Ready<_> { panic!("of the call itself") }).await;
}

#[tokio::test(start_paused = true)]
async fn seed1_16_a_retry_does_not_wait_after_the_last_attempt() {
    let calls = Calls::default();
    let backoff = Backoff::constant(ms(100));
    let policy = Retry::with(backoff).attempts(5);
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 100, 200, 300, 400]);
    assert_eq!(calls.began.get().unwrap().elapsed(), ms(400));
}

#[tokio::test(start_paused = true)]
async fn seed1_17_six_attempts_wait_five_times_each_twice_as_long_up_to_the_cap() {
    let calls = Calls::default();
    let failures = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&failures);
    let policy =
        Retry::new().attempts(6).delay(ms(200)).factor(2.0).max_delay(ms(5_000)).on_failure(
            move |error: &String, attempt, wait: Option<Duration>| {
                let wait = wait.map(|wait| wait.as_millis());
                sink.lock().unwrap().push((error.clone(), attempt, wait));
            },
        );
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 200, 600, 1_400, 3_000, 6_200]);
    let waits = [Some(200), Some(400), Some(800), Some(1_600), Some(3_200), None];
    let expected: Vec<_> =
        (1..).zip(waits).map(|(attempt, wait)| (format!("no {attempt}"), attempt, wait)).collect();
    assert_eq!(*failures.lock().unwrap(), expected, "also of the last failure");
}

#[tokio::test(start_paused = true)]
async fn seed1_17_the_longest_delay_is_a_limit_and_the_factor_defaults_to_one() {
    for (policy, expected) in [
        (
            Retry::new().attempts(4).delay(ms(200)).factor(2.0).max_delay(ms(300)),
            [0, 200, 500, 800],
        ),
        (Retry::new().attempts(4).delay(ms(200)), [0, 200, 400, 600]),
        (Retry::new().attempts(4).factor(2.0), [0, 0, 0, 0]),
        (Retry::with(Backoff::constant(ms(7))).attempts(4), [0, 7, 14, 21]),
    ] {
        let calls = Calls::default();
        assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
        assert_eq!(calls.at(), expected);
    }
    let calls = Calls::default();
    assert!(retry(Retry::default(), || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 0, 0], "three attempts by default");
}

#[tokio::test(start_paused = true)]
async fn seed1_17_zero_attempts_are_an_error_and_no_call_is_made() {
    let calls = Calls::default();
    let result = retry(Retry::new().attempts(0), || calls.works_from(1)).await;
    assert_eq!(result, Err(RetryError::Policy(RetryProblem::NoAttempts)));
    assert_eq!(
        result.unwrap_err().to_string(),
        "the retry cannot work: `attempts` is 0; write `attempts(1)` or more, which includes the first call"
    );
    assert!(calls.at().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_invalid_policy_makes_no_call_and_says_what_to_write() {
    let backoff = || Backoff::exponential(ms(9), ms(1));
    let table = [
        (Retry::new().factor(0.5), "`factor` is 0.5; write a number of at least 1.0, such as 2.0"),
        (
            Retry::new().delay(ms(200)).max_delay(ms(100)),
            "`max_delay` is 100ms and `delay` is 200ms; write at least 200ms",
        ),
        (
            Retry::with(Backoff::none()).delay(ms(1)),
            "`delay` is set beside a backoff; remove it, or begin with `Retry::new()`",
        ),
        (Retry::with(backoff()), "`max` of the backoff is 1ms; "),
        (Retry::with(Backoff::default().jitter(1.5)), "`jitter` of the backoff is 1.5; "),
        (Retry::with(Backoff::default().jitter(f64::NAN)), "`jitter` of the backoff is NaN; "),
        (Retry::with(Backoff::linear(ms(0), ms(1), ms(9))), "`min` of the backoff is 0s; "),
    ];
    for (policy, expected) in table {
        let calls = Calls::default();
        let error = retry(policy, || calls.works_from(1)).await.unwrap_err().to_string();
        let text = error.strip_prefix("the retry cannot work: ").unwrap();
        assert!(text.starts_with(expected), "{text}");
        assert!(calls.at().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn jitter_can_use_a_custom_random_source_and_a_backoff_may_be_finite() {
    let calls = Calls::default();
    let backoff = Backoff::iter(|| [ms(100), ms(200)]).jitter(Jitter::Symmetric(0.5));
    let policy = Retry::with(backoff).attempts(9).random(|| 0.0);
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 50, 150]);
}

#[tokio::test(start_paused = true)]
async fn a_delay_requested_by_an_error_replaces_the_backoffs_for_that_attempt() {
    let calls = Calls::default();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&waits);
    let policy = Retry::with(Backoff::exponential(ms(100), ms(900)).jitter(Jitter::None))
        .attempts(6)
        .retry_after(|error: &String, attempt| {
            assert_eq!(*error, format!("no {attempt}"));
            // Beyond the bound of the backoff, or without a delay.
            match attempt {
                2 => Some(ms(5_000)),
                4 => Some(Duration::ZERO),
                _ => None,
            }
        })
        .on_failure(move |_, attempt, wait| sink.lock().unwrap().push((attempt, wait)));
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(
        calls.at(),
        [0, 100, 5_100, 5_300, 5_300, 5_700],
        "the backoff goes on where it was"
    );
    let expected = [Some(100), Some(5_000), Some(200), Some(0), Some(400), None];
    assert_eq!(
        *waits.lock().unwrap(),
        (1..).zip(expected.map(|it| it.map(ms))).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn a_delay_requested_by_an_error_changes_neither_attempts_nor_deadline() {
    let delay = |_: &String, _| Some(ms(1_000));
    let calls = Calls::default();
    let policy = Retry::with(Backoff::none()).attempts(3).retry_after(delay);
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 1_000, 2_000], "there is no delay after the last attempt");

    let calls = Calls::default();
    let policy = Retry::new().attempts(9).again_if(|_, attempt| attempt < 2).retry_after(delay);
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at(), [0, 1_000]);

    let calls = Calls::default();
    let policy = Retry::with(Backoff::iter(|| [ms(1)])).attempts(4).retry_after(delay);
    assert!(retry(policy, || calls.works_from(NEVER)).await.is_err());
    assert_eq!(calls.at().len(), 4, "a backoff with an end isn't used up");

    let calls = Calls::default();
    let policy = Retry::new().attempts(3).accept_if(|value| *value >= 2).retry_after(delay);
    assert_eq!(retry(policy, || calls.works_from(1)).await, Ok(2));
    assert_eq!(calls.at(), [0, 0], "a value that isn't accepted asks for nothing");
}

#[test]
fn the_error_of_a_retry_contains_the_calls_error_and_prints_it_once() {
    let error = RetryError::Failed(NoPrices(io::ErrorKind::TimedOut.into()));
    assert!(error.source().is_some_and(|source| source.is::<NoPrices>()));
    assert_eq!(ExitError::from(error).to_string(), "no prices: timed out");
    let error = RetryError::<NoPrices>::Policy(RetryProblem::NoAttempts);
    let text = ExitError::from(error).to_string();
    assert_eq!(text.matches("`attempts` is 0").count(), 1, "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_trigger_of_a_child_sees_the_error_of_a_call() {
    let spec = worker("a", async |ctx: Context| {
        tokio::task::yield_now().await;
        match ctx.incarnation() {
            1 => Err(CallError::Failed(NoPrices(io::ErrorKind::TimedOut.into()))),
            _ => {
                ctx.cancelled().await;
                Ok(())
            }
        }
    });
    for spec in [
        spec.clone().restart_if(|_: &NoPrices| true),
        spec.clone().restart_if(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut),
        spec.clone()
            .restart_if(|error: &CallError<NoPrices>| matches!(error, CallError::Failed(_))),
    ] {
        let spec = spec.restart(RestartType::OnAbnormal).backoff(Backoff::none());
        let app = Supervisor::builder("app").child(spec).build().unwrap().start().await.unwrap();
        tokio::time::sleep(ms(1)).await;
        assert_eq!(app.which_child("a").await.unwrap().incarnation, 2);
    }
}
