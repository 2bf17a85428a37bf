//! Extreme durations and numbers: zero, a nanosecond, the longest ones, NaN, infinity, negatives.
//!
//! Each setter of a builder, a spec, a mailbox, a store and a call gets all of them. A value is refused at
//! build with an error that names the child, or the tree starts, fails, restarts, is shown, and stops.
//! Nothing panics and nothing overflows: the tests are compiled with overflow checks.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use verger::dead_letter::{DeadLetterLog, DeadLetterStore};
use verger::mailbox::{Drain, Inbox, Overflow, Reply};
use verger::policy::{
    BinarySlots, Curve, FailureLog, Intensity, Jitter, LogLevel, OnExhausted, Reset,
};
use verger::resilience::{CircuitBreaker, Retry, retry};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, HealthCheck, Readiness, RunError,
    Shutdown, Supervisor, SupervisorBuilder, mailbox_with_capacity, worker, worker_with_mailbox,
};

use crate::common::killed;
use crate::probe::in_time;

const SECOND: Duration = Duration::from_secs(1);

const DURATIONS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_millis(1),
    Duration::from_secs(u32::MAX as u64),
    Duration::from_millis(u64::MAX),
    Duration::from_secs(u64::MAX),
    Duration::MAX,
];

const COUNTS: [u32; 4] = [0, 1, u32::MAX - 1, u32::MAX];

const NUMBERS: [f64; 11] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    -1.0,
    -0.0,
    0.5,
    1.0,
    1e300,
];

#[derive(Debug, thiserror::Error)]
#[error("it fails")]
struct Failure;

/// Works for a second, and then fails.
fn fails() -> ChildSpec {
    worker("fails", async |ctx: Context| -> Exit {
        ctx.ready();
        match ctx.run_until_cancelled(sleep(SECOND)).await {
            Some(()) => Err(Failure.into()),
            None => Ok(()),
        }
    })
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").unlimited_restarts()
}

/// The tree is refused with an error that names the tree, or it runs for three seconds, is shown, and
/// stops.
async fn refused_or_works(probe: &str, tree: SupervisorBuilder) {
    let tree = match tree.build() {
        Ok(tree) => tree,
        Err(error) => return assert!(error.to_string().contains("`app"), "{probe}: {error}"),
    };
    let app = match in_time(tree.start(), probe).await {
        Ok(app) => app,
        Err(error) => return assert!(error.to_string().contains("`app"), "{probe}: {error}"),
    };
    for _ in 0..3 {
        sleep(SECOND).await;
        if let Ok(status) = app.status().await {
            assert!(!status.to_string().is_empty());
            serde_json::to_string(&status).unwrap_or_else(|error| panic!("{probe}: {error}"));
            for child in status.root.children {
                let spec = app.child_spec(child.child.path.name()).await;
                drop(spec.map(|spec| serde_json::to_string(&spec).unwrap()));
            }
        }
    }
    match in_time(app.stop("done"), probe).await {
        Ok(()) | Err(RunError::GaveUp { .. } | RunError::Forced { .. }) => {}
        Err(error) => panic!("{probe}: {error}"),
    }
}

type OfSpec<T> = fn(ChildSpec, T) -> ChildSpec;
type OfTree<T> = fn(SupervisorBuilder, T) -> SupervisorBuilder;

#[tokio::test(start_paused = true)]
async fn a_duration_of_a_child_is_refused_or_works() {
    let setters: [(&str, OfSpec<Duration>); 17] = [
        ("shutdown", |spec, it| spec.shutdown(it)),
        ("activation_timeout", |spec, it| spec.readiness(Readiness::Signal).activation_timeout(it)),
        ("restarts", |spec, it| spec.own_restarts(2, it)),
        ("tumbling", |spec, it| spec.intensity(Intensity::tumbling(2, it))),
        ("decaying", |spec, it| spec.intensity(Intensity::decaying(2.0, it))),
        ("failing_for", |spec, it| spec.failing_for(it)),
        ("on_exhausted", |spec, it| {
            spec.consecutive_restarts(0).on_exhausted(OnExhausted::Pause(it))
        }),
        ("retry_after", |spec, it| spec.retry_after(move |_: &Failure| Some(it))),
        ("every", |spec, it| spec.health_check(HealthCheck::new(async |_| ()).every(it))),
        ("initial_delay", |spec, it| {
            spec.health_check(HealthCheck::new(async |_| ()).initial_delay(it))
        }),
        ("timeout", |spec, it| {
            let check = HealthCheck::new(async |_| sleep(SECOND / 2).await).every(SECOND);
            spec.health_check(check.timeout(it).failures(1).restarts())
        }),
        ("constant", |spec, it| spec.backoff(Backoff::constant(it))),
        ("custom", |spec, it| spec.backoff(Backoff::custom(Always(it)))),
        ("iter", |spec, it| spec.backoff(Backoff::iter(move || [it]))),
        ("reset_after", |spec, it| spec.backoff(Backoff::constant(SECOND).reset_after(it))),
        ("half_life", |spec, it| {
            let reset = Reset::Decay { half_life: it };
            spec.backoff(Backoff::exponential(SECOND, 2 * SECOND).reset(reset))
        }),
        ("cap", |spec, it| {
            spec.backoff(Backoff::exponential(SECOND, Duration::MAX).cap(it).soft_cap().jitter(1.0))
        }),
    ];
    for (name, set) in setters {
        for duration in DURATIONS {
            let probe = format!("{name}({duration:?})");
            let fast = fails().backoff(Backoff::none());
            let other = set(fails().named("other"), duration);
            refused_or_works(&probe, app().child(set(fast, duration)).child(other)).await;
        }
    }
}

/// A curve that always returns the same delay.
struct Always(Duration);

impl Curve for Always {
    fn delay(&self, _index: u32) -> Duration {
        self.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_duration_of_a_supervisor_is_refused_or_works() {
    let deaf = || worker("deaf", async |_ctx: Context| -> Exit { std::future::pending().await });
    let setters: [(&str, OfTree<Duration>); 7] = [
        ("restarts", |tree, it| tree.restarts(2, it)),
        ("tumbling", |tree, it| tree.intensity(Intensity::tumbling(2, it))),
        ("decaying", |tree, it| tree.intensity(Intensity::decaying(2.0, it))),
        ("leak_timeout", |tree, it| tree.leak_timeout(it)),
        ("stop_deadline", |tree, it| tree.stop_deadline(it)),
        ("on_exhausted", |tree, it| tree.restarts(0, SECOND).on_exhausted(OnExhausted::Pause(it))),
        ("defaults", |tree, it| {
            tree.defaults(|child| {
                let child = child.backoff(Backoff::constant(it)).own_restarts(9, it);
                child.activation_timeout(it).failing_for(it)
            })
        }),
    ];
    for (name, set) in setters {
        for duration in DURATIONS {
            let probe = format!("{name}({duration:?})");
            let tree = Supervisor::builder("app").child(fails()).child(deaf());
            let below = Supervisor::builder("mid").child(fails()).child(deaf());
            refused_or_works(&probe, set(tree, duration).child(set(below, duration))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_is_refused_or_works() {
    let of_spec: [(&str, OfSpec<u32>); 8] = [
        ("restarts", |spec, it| spec.own_restarts(it, SECOND)),
        ("tumbling", |spec, it| spec.intensity(Intensity::tumbling(it, Duration::MAX))),
        ("consecutive_restarts", |spec, it| spec.consecutive_restarts(it)),
        ("failures", |spec, it| {
            spec.health_check(HealthCheck::new(async |_| Err::<(), _>(Failure)).failures(it))
        }),
        ("successes", |spec, it| {
            spec.health_check(HealthCheck::new(async |_| Err::<(), _>(Failure)).successes(it))
        }),
        ("geometric", |spec, it| spec.backoff(Backoff::geometric(SECOND, 9 * SECOND, it))),
        ("ceiling", |spec, it| {
            let slots = BinarySlots::new(SECOND).ceiling(it).at_slot(it);
            spec.backoff(Backoff::binary_slots(slots))
        }),
        ("critical", |spec, it| {
            spec.failure_log(FailureLog::at(LogLevel::Info).critical(LogLevel::Error, it))
        }),
    ];
    for (name, set) in of_spec {
        for count in COUNTS {
            let probe = format!("{name}({count})");
            refused_or_works(&probe, app().child(set(fails(), count)).restarts(1, SECOND)).await;
            refused_or_works(&probe, Supervisor::builder("app").child(set(fails(), count))).await;
        }
    }
    for count in [0, 1, usize::MAX] {
        let probe = format!("max_children({count})");
        let conns = DynamicSupervisor::builder("conns").max_children(count);
        refused_or_works(&probe, app().child(conns)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_with_a_fraction_is_refused_or_works() {
    let exponential = || Backoff::exponential(SECOND, Duration::MAX);
    let setters: [(&str, OfSpec<f64>); 8] = [
        ("decaying", |spec, it| spec.intensity(Intensity::decaying(it, SECOND))),
        ("decaying for ever", |spec, it| spec.intensity(Intensity::decaying(it, Duration::MAX))),
        ("factor", |spec, it| spec.backoff(Backoff::exponential(SECOND, Duration::MAX).factor(it))),
        ("compounding", |spec, it| {
            let compounding = Backoff::exponential(SECOND, Duration::MAX).compounding();
            spec.backoff(compounding.factor(it))
        }),
        ("factor of no curve", |spec, it| spec.backoff(Backoff::none().factor(it))),
        ("jitter", |spec, it| spec.backoff(Backoff::constant(Duration::MAX).jitter(it))),
        ("symmetric", |spec, it| {
            spec.backoff(Backoff::constant(Duration::MAX).jitter(Jitter::Symmetric(it)))
        }),
        ("random", |spec, it| {
            spec.backoff(Backoff::constant(SECOND).jitter(Jitter::Full).random(move || it))
        }),
    ];
    for (name, set) in setters {
        for number in NUMBERS {
            let probe = format!("{name}({number})");
            refused_or_works(&probe, app().child(set(fails(), number))).await;
            let random = app().random(move || move || number);
            let jitter = exponential().jitter(Jitter::Equal);
            refused_or_works(&probe, random.child(fails().backoff(jitter))).await;
        }
    }
    let score = |it| Supervisor::builder("app").intensity(Intensity::decaying(it, SECOND));
    for number in NUMBERS {
        refused_or_works(&format!("decaying({number})"), score(number).child(fails())).await;
    }
}

#[test]
fn each_delay_of_each_valid_curve_with_each_jitter_is_a_duration() {
    let jitters = |most: Duration| {
        let mut jitters =
            vec![Jitter::None, Jitter::Full, Jitter::Equal, Jitter::AdditiveAbs(most)];
        jitters.extend(NUMBERS.map(Jitter::Additive));
        jitters.extend(NUMBERS.map(Jitter::Symmetric));
        jitters
    };
    for (min, max) in DURATIONS.into_iter().flat_map(|min| DURATIONS.map(|max| (min, max))) {
        let slots = BinarySlots::new(min).ceiling(u32::MAX).stay_at_ceiling();
        let mut curves = vec![
            Backoff::constant(min),
            Backoff::linear(min, max, max),
            Backoff::linear(min, max, min),
            Backoff::fibonacci(min, max),
            Backoff::binary_slots(slots),
            Backoff::custom(Always(max)).cap(min),
        ];
        curves.extend(COUNTS.map(|steps| Backoff::geometric(min, max, steps)));
        curves.extend(NUMBERS.map(|factor| Backoff::exponential(min, max).factor(factor)));
        for curve in curves {
            for (jitter, number) in jitters(max).into_iter().zip(NUMBERS.into_iter().cycle()) {
                let backoff = curve.clone().jitter(jitter);
                for backoff in [backoff.clone().jitter_before_cap(), backoff.hard_floor()] {
                    if let Err(problem) = backoff.check() {
                        assert!(!problem.to_string().is_empty());
                        continue;
                    }
                    assert!(backoff.delays().random(move || number).take(3).count() <= 3);
                    for index in COUNTS {
                        backoff.delay(index, &mut || number);
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_of_a_mailbox_a_store_or_a_log_is_refused_or_works() {
    for duration in DURATIONS {
        for count in COUNTS {
            let probe = format!("{duration:?} {count}");
            let capacity = if count > 1 { usize::MAX } else { count as usize };
            let (address, mailbox) = mailbox_with_capacity::<Reply<u32>>(capacity);
            let mailbox = mailbox.hold_until(Drain::After(duration)).max_attempts(count);
            let mailbox = mailbox.overflow(Overflow::DropOldest);
            let child = worker_with_mailbox("reader", mailbox, async |_, inbox| {
                let mut inbox: Inbox<Reply<u32>> = inbox;
                while let Some(question) = inbox.deliver().await {
                    question.ack().send(1);
                }
            });
            let store = DeadLetterStore::ring(capacity).retention(duration).max_replays(count);
            let log = DeadLetterLog::default().first(count).pause(duration);
            let tree = app().dead_letter_log(log).dead_letter_store(&store).child(child);
            let asks = tokio::spawn(async move {
                for _ in 0..3 {
                    drop(address.ask_within(duration, |reply| reply).await);
                }
            });
            refused_or_works(&probe, tree.child(fails().consecutive_restarts(0))).await;
            in_time(asks, &probe).await.unwrap();
            for entry in store.entries() {
                drop(store.replay(entry.id));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_of_a_retry_or_a_breaker_is_refused_or_works() {
    for duration in DURATIONS {
        for (count, number) in COUNTS.into_iter().flat_map(|it| NUMBERS.map(|number| (it, number)))
        {
            let attempts = if count > 1 { 3 } else { count };
            let policy = Retry::new().attempts(attempts).delay(duration).factor(number);
            let call = retry(policy, async || Err::<(), _>(Failure));
            if let Ok(result) = timeout(10 * SECOND, call).await {
                assert!(!result.unwrap_err().to_string().is_empty());
            }
            let policy = Retry::new().max_delay(duration).retry_after(move |_, _| Some(duration));
            let call = retry(policy.attempts(attempts), async || Err::<(), _>(Failure));
            drop(timeout(10 * SECOND, call).await);
        }
        for count in COUNTS {
            let breaker = CircuitBreaker::new("service").max_failures(count);
            let breaker = breaker.reset_after(duration).call_timeout(duration);
            let other = breaker.clone().retry_after(move |_: &Failure| Some(duration));
            for breaker in [breaker, other] {
                for _ in 0..3 {
                    let call = breaker.call(async || Err::<(), _>(Failure));
                    assert!(!in_time(call, "breaker").await.unwrap_err().to_string().is_empty());
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_any_length_ends_with_the_child() {
    for duration in DURATIONS {
        let probe = format!("shutdown of {duration:?}");
        let slow = worker("slow", async |ctx: Context| {
            ctx.cancelled().await;
            sleep(SECOND).await;
        });
        let tree = app().child(slow.shutdown(Shutdown::Timeout(duration)));
        let tree = tree.build().unwrap();
        let run = async { tree.with_graceful_shutdown(sleep(SECOND)).await };
        in_time(run, &probe).await.or_else(killed).unwrap();
    }
}
