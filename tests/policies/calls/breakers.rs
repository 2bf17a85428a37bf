//! Circuit breakers.

use std::error::Error;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{NoPrices, ms};
use tokio::time::Instant;
use verger::ExitError;
use verger::resilience::{CallError, CircuitBreaker, CircuitState};

/// The state changes that a breaker has reported.
type Changes = Arc<Mutex<Vec<(CircuitState, CircuitState)>>>;

fn breaker() -> (CircuitBreaker<&'static str>, Changes) {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&changes);
    let breaker = CircuitBreaker::new("db")
        .max_failures(3)
        .reset_after(ms(10_000))
        .on_change(move |from, to| sink.lock().unwrap().push((from, to)));
    (breaker, changes)
}

async fn work(breaker: &CircuitBreaker<&'static str>) -> Result<u8, CallError<&'static str>> {
    breaker.call(async || Ok(7)).await
}

async fn open() -> (CircuitBreaker<&'static str>, Changes) {
    let (breaker, changes) = breaker();
    for _ in 0..3 {
        assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    }
    assert_eq!(breaker.state(), CircuitState::Open);
    (breaker, changes)
}

async fn fail(breaker: &CircuitBreaker<&'static str>) -> Result<(), CallError<&'static str>> {
    breaker.call(async || Err("no")).await
}

#[tokio::test(start_paused = true)]
async fn kin_166_a_closed_breaker_makes_the_calls() {
    let (breaker, changes) = breaker();
    assert_eq!(work(&breaker).await, Ok(7));
    assert_eq!(breaker.state(), CircuitState::Closed);
    assert!(changes.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn kin_166_an_open_breaker_refuses_at_once_with_its_own_error() {
    let (breaker, _) = open().await;
    let refused = work(&breaker).await.unwrap_err();
    assert_eq!(refused.to_string(), "db: the circuit is open for another 10s");
}

#[test]
fn the_remaining_reset_time_is_written_in_readable_units() {
    for (nanos, text) in [
        (1, "1ms"),
        (943_598_678, "944ms"),
        (943_000_000, "943ms"),
        (2_000_000_001, "2s 1ms"),
        (9_998_000_001, "9s 999ms"),
        (9_999_999_999, "10s"),
        (10_000_000_000, "10s"),
        (10_000_000_001, "11s"),
        (61_200_000_000, "1m 2s"),
        (3_600_000_000_000, "1h"),
    ] {
        let retry_in = Duration::from_nanos(nanos);
        let error = CallError::<io::Error>::Open { name: "db".to_owned(), retry_in };
        assert_eq!(error.to_string(), format!("db: the circuit is open for another {text}"));
    }
    let error = CallError::<io::Error>::Open { name: "db".to_owned(), retry_in: Duration::MAX };
    assert!(error.to_string().starts_with("db: the circuit is open for another 584542046090years"));
}

#[tokio::test(start_paused = true)]
async fn kin_166_after_the_reset_time_one_probe_decides() {
    let (breaker, changes) = open().await;
    tokio::time::advance(ms(10_000)).await;
    assert_eq!(breaker.state(), CircuitState::Open, "it is noticed by the next call");
    assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    tokio::time::advance(ms(9_999)).await;
    assert!(matches!(work(&breaker).await, Err(CallError::Open { .. })), "a fresh deadline");
    tokio::time::advance(ms(1)).await;
    assert_eq!(work(&breaker).await, Ok(7));
    use CircuitState::{Closed, HalfOpen, Open};
    let expected =
        [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open), (Open, HalfOpen), (HalfOpen, Closed)];
    assert_eq!(*changes.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn kin_166_calls_during_a_probe_are_refused() {
    let (breaker, _) = open().await;
    tokio::time::advance(ms(10_000)).await;
    let probe = breaker.clone();
    let probe = tokio::spawn(async move {
        probe
            .call(async || {
                tokio::time::sleep(ms(50)).await;
                Ok(())
            })
            .await
    });
    tokio::task::yield_now().await;
    let refused = work(&breaker).await.unwrap_err();
    assert_eq!(refused.to_string(), "db: a probe decides whether the circuit closes, within 10s");
    assert_eq!(probe.await.unwrap(), Ok(()));
    assert_eq!(work(&breaker).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn kin_166_a_slow_call_is_a_failure() {
    let breaker = CircuitBreaker::<&str>::new("db").max_failures(1).call_timeout(ms(20));
    let slow = breaker.call(pending::<Result<(), _>>).await.unwrap_err();
    assert_eq!(slow.to_string(), "db: no answer within 20ms");
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn kin_166_a_filtered_error_does_not_count() {
    let breaker = CircuitBreaker::new("db").max_failures(1).fails_if(|error| *error != "no");
    assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")), "the caller has it anyway");
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_stays_open_as_long_as_the_error_requests() {
    let breaker = CircuitBreaker::new("vendor")
        .max_failures(2)
        .reset_after(ms(1_000))
        .fails_if(|&requested: &Option<u64>| requested != Some(0))
        .retry_after(|requested| requested.map(ms));
    let fail = async |requested| {
        let _ = breaker.call(async || Err::<(), _>(requested)).await;
        breaker.call(async || Err::<(), _>(Some(0))).await
    };
    let open = |millis| Err(CallError::Open { name: "vendor".to_owned(), retry_in: ms(millis) });
    assert_eq!(fail(Some(9_000)).await, Err(CallError::Failed(Some(0))), "it opens nothing");
    let _ = breaker.call(async || Err::<(), _>(Some(9_000))).await;
    assert_eq!(fail(Some(3_000)).await, open(3_000), "the last one says it, which opens it");
    tokio::time::advance(ms(3_000)).await;
    assert_eq!(fail(Some(7_000)).await, open(7_000), "as does a probe");
    tokio::time::advance(ms(7_000)).await;
    assert_eq!(fail(None).await, open(1_000), "without a request, the reset time applies");
    tokio::time::advance(ms(1_000)).await;
}

#[tokio::test(start_paused = true)]
async fn kin_166_with_a_reset_time_of_zero_the_next_call_is_a_probe() {
    let breaker = CircuitBreaker::new("db").max_failures(1).reset_after(Duration::ZERO);
    assert!(fail(&breaker).await.is_err());
    assert_eq!(work(&breaker).await, Ok(7));
}

/// A limit of zero failures is the only invalid option; it is treated as one.
#[tokio::test(start_paused = true)]
async fn kin_166_a_limit_of_zero_failures_is_treated_as_one() {
    let breaker = CircuitBreaker::new("db").max_failures(0);
    assert_eq!(work(&breaker).await, Ok(7));
    assert!(fail(&breaker).await.is_err());
    assert_eq!(breaker.state(), CircuitState::Open);
}

/// The whole life of one breaker: three failures in a row open it, a probe after ten seconds decides.
#[tokio::test(start_paused = true)]
async fn seed1_21_a_breaker_opens_after_failures_in_a_row_and_a_probe_closes_it() {
    use CircuitState::{Closed, HalfOpen, Open};
    let (breaker, changes) = breaker();
    let taken = || std::mem::take(&mut *changes.lock().unwrap());
    let refused = |millis| Err(CallError::Open { name: "db".to_owned(), retry_in: ms(millis) });

    // A success in between starts the count again.
    for _ in 0..2 {
        assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    }
    assert_eq!(work(&breaker).await, Ok(7));
    for _ in 0..2 {
        assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    }
    assert_eq!((breaker.state(), taken()), (Closed, vec![]));
    assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    assert_eq!((breaker.state(), taken()), (Open, vec![(Closed, Open)]));

    // Until the reset time no call is made; the time alone changes nothing.
    tokio::time::advance(ms(9_999)).await;
    assert_eq!(breaker.call(async || -> Result<u8, _> { panic!("made") }).await, refused(1));
    tokio::time::advance(ms(1)).await;
    assert_eq!((breaker.state(), taken()), (Open, vec![]));

    // One failure of the probe is enough, and its deadline is a new one.
    assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    assert_eq!(taken(), [(Open, HalfOpen), (HalfOpen, Open)]);
    assert_eq!(work(&breaker).await, refused(10_000));
    tokio::time::advance(ms(10_000)).await;
    assert_eq!(work(&breaker).await, Ok(7));
    assert_eq!((breaker.state(), taken()), (Closed, vec![(Open, HalfOpen), (HalfOpen, Closed)]));

    // After that, the count begins at zero.
    for _ in 0..2 {
        assert_eq!(fail(&breaker).await, Err(CallError::Failed("no")));
    }
    assert_eq!(breaker.state(), Closed);
}

#[tokio::test(start_paused = true)]
async fn seed1_21_a_slow_call_counts_a_filtered_error_does_not_and_the_reset_time_may_be_zero() {
    let breaker = CircuitBreaker::new("db")
        .max_failures(1)
        .call_timeout(ms(20))
        .reset_after(Duration::ZERO)
        .fails_if(|error| *error != "mine");
    let began = Instant::now();
    let mine = breaker.call(async || Err::<u8, _>("mine")).await;
    assert_eq!((mine, breaker.state()), (Err(CallError::Failed("mine")), CircuitState::Closed));

    let late = Err(CallError::TimedOut { name: "db".to_owned(), after: ms(20) });
    assert_eq!(breaker.call(pending::<Result<u8, _>>).await, late);
    assert_eq!((began.elapsed(), breaker.state()), (ms(20), CircuitState::Open));

    assert_eq!(work(&breaker).await, Ok(7), "the next call is a probe");
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn seed1_21_a_panicking_call_is_a_failure_and_a_dropped_call_is_not() {
    let breaker = CircuitBreaker::<&str>::new("db").max_failures(1);
    let dropped = breaker.clone();
    let task = tokio::spawn(async move { dropped.call(pending::<Result<(), _>>).await });
    tokio::task::yield_now().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(breaker.state(), CircuitState::Closed);

    let panics = breaker.clone();
    let task = tokio::spawn(async move {
        panics.call(async || -> Result<(), _> { panic!("by itself") }).await
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[test]
fn the_breakers_error_contains_the_calls_error_and_prints_it_once() {
    let error = CallError::Failed(NoPrices(io::ErrorKind::TimedOut.into()));
    let source = error.source().and_then(|source| source.downcast_ref::<NoPrices>());
    assert_eq!(source.unwrap().0.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "no prices");
    assert_eq!(ExitError::from(error).to_string(), "no prices: timed out");

    let late = || CallError::<NoPrices>::TimedOut { name: "vendor".to_owned(), after: ms(5) };
    assert!(late().source().is_none());
    assert_eq!(
        ExitError::from(CallError::Failed(late())).to_string(),
        "vendor: no answer within 5ms"
    );
}

#[tokio::test(start_paused = true)]
async fn clones_of_a_breaker_share_one_state_whatever_the_error() {
    let breaker = CircuitBreaker::new("db").max_failures(1);
    let clone = breaker.clone();

    let refused = || async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) };
    assert!(matches!(breaker.call(refused).await, Err(CallError::Failed(_))));

    assert_eq!(clone.state(), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_leaves_its_place_to_the_next_call() {
    let (breaker, _) = open().await;
    tokio::time::advance(ms(10_000)).await;
    let slow = breaker.call(pending::<Result<(), _>>);
    assert!(tokio::time::timeout(ms(5), slow).await.is_err());
    assert_eq!(work(&breaker).await, Ok(7));
}
