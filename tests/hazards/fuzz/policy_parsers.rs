//! Arbitrary text, read as a policy, as a word, as a name or as a path.
//!
//! The first byte of an input, a letter, selects what the rest is read as: see [`run`]. A value is read
//! from JSON, from TOML, and from TOML behind a key.
//!
//! # Invariants
//!
//! 1. No text causes a panic.
//! 2. What can be read is written, and read again, as the same value, in TOML and in JSON.
//! 3. What can be read can be used: its delays stay within their bounds, and a tree with it is either
//!    refused with an error or runs and stops.
//! 4. The error for an unknown word, an invalid name or a wrong path contains it.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;
use verger::dead_letter::{DeadLetterLog, DeadLetterReason};
use verger::policy::{
    AutoShutdown, FailureLog, FirstStart, Intensity, Jitter, LogLevel, OnExhausted, OnExit, OnLeak,
    PolicySource, Preset, Reset, RestartPolicy, Start, StartCause, Trigger,
};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, ExitKind, Lifecycle, Readiness,
    RestartType, Shutdown, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

/// How often a child ends by itself. Then it runs until it is cancelled.
const ENDS: u32 = 6;
/// A tree that waits for longer is stopped.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// See the [module](self).
pub(crate) fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind {
        b'b' => each(text, |backoff: Backoff| {
            check_delays(&backoff);
            supervise(app(|child| child.backoff(backoff)));
        }),
        b'p' => each(text, |policy: RestartPolicy| {
            supervise(app(|child| child.policy(policy.clone())));
            supervise(
                Supervisor::builder("app").defaults(|child| child.policy(policy)).child(ends("a")),
            );
        }),
        b'i' => each(text, |intensity: Intensity| {
            supervise(app(|child| child.intensity(intensity)));
            supervise(app(|child| child).intensity(intensity));
        }),
        b't' => each(text, |trigger: Trigger| supervise(app(|child| child.restart(trigger)))),
        b'j' => each(text, |jitter: Jitter| {
            let backoff = Backoff::default().jitter(jitter);
            check_delays(&backoff);
            supervise(app(|child| child.backoff(backoff)));
        }),
        b'r' => each(text, |reset: Reset| {
            let backoff = Backoff::default().reset(reset);
            check_delays(&backoff);
            supervise(app(|child| child.backoff(backoff)));
        }),
        b'x' => each(text, |what: OnExhausted| {
            supervise(app(|child| child.on_exhausted(what).consecutive_restarts(1)));
            supervise(app(|child| child).on_exhausted(what).restarts(1, PATIENCE));
        }),
        b'f' => each(text, |log: FailureLog| supervise(app(|child| child.failure_log(log)))),
        b'd' => each(text, |log: DeadLetterLog| supervise(app(|child| child).dead_letter_log(log))),
        b's' => shutdown(text),
        b'e' => preset(text),
        b'w' => words(text),
        b'n' => name(text),
        b'/' => path(text),
        _ => {}
    }
}

// --- Reading and writing -------------------------------------------------------------------------

/// A value behind a key, since a file is a table.
#[derive(Deserialize, Serialize)]
struct File<T> {
    it: T,
}

/// Reads a value in each format. Checks what was read, and uses it.
fn each<T>(text: &str, mut use_it: impl FnMut(T))
where
    T: Clone + Debug + DeserializeOwned + PartialEq + Serialize,
{
    let mut read = |value: Result<T, String>| match value {
        Ok(value) => {
            round(&value);
            use_it(value);
        }
        Err(error) => assert!(!error.is_empty()),
    };
    read(serde_json::from_str(text).map_err(|error| error.to_string()));
    read(toml::from_str(text).map_err(|error| error.to_string()));
    let file = toml::from_str::<File<T>>(&format!("it = {text}"));
    read(file.map(|file| file.it).map_err(|error| error.to_string()));
}

/// Asserts that a value can be read from what is written.
fn round<T: Clone + Debug + DeserializeOwned + PartialEq + Serialize>(value: &T) {
    let shown = format!("{value:?}");
    // A part that isn't checked by itself may be NaN, which isn't equal to itself.
    let same = |other: &T| other == value || format!("{other:?}") == shown;
    let text = toml::to_string(&File { it: value.clone() }).expect(&shown);
    match toml::from_str::<File<T>>(&text) {
        Ok(file) => assert!(same(&file.it), "{shown} is written as {text}"),
        Err(error) => panic!("{shown} is written as {text}, and then {error}"),
    }
    let json = serde_json::to_value(value).expect(&shown);
    if shown.contains("NaN") || shown.contains("inf") {
        return; // JSON has no such numbers.
    }
    match serde_json::from_value::<T>(json.clone()) {
        Ok(again) => assert!(same(&again), "{shown} is written as {json}"),
        Err(error) => panic!("{shown} is written as {json}, and then {error}"),
    }
}

/// Asserts that a text is read alike by `FromStr` and from a file, and that the error contains it.
fn parse<T>(text: &str) -> Option<T>
where
    T: Debug + DeserializeOwned + FromStr<Err: Display>,
{
    let read = serde_json::from_value::<T>(Value::from(text));
    match text.parse::<T>() {
        Ok(value) => {
            assert_eq!(format!("{:?}", read.ok()), format!("{:?}", Some(&value)), "{text:?}");
            Some(value)
        }
        Err(error) => {
            assert!(error.to_string().contains(text), "{text:?}: {error}");
            let read = read.expect_err(text).to_string();
            assert!(read.contains(text), "{text:?}: {read}");
            None
        }
    }
}

fn words(text: &str) {
    fn word<T>(text: &str)
    where
        T: Clone + Debug + DeserializeOwned + Display + FromStr<Err: Display> + PartialEq,
        T: Serialize,
    {
        if let Some(value) = parse::<T>(text) {
            assert_eq!(value.to_string().parse().ok(), Some(value.clone()));
            round(&value);
        }
    }

    word::<RestartType>(text);
    word::<Strategy>(text);
    word::<AutoShutdown>(text);
    word::<Start>(text);
    word::<FirstStart>(text);
    word::<Readiness>(text);
    word::<StartCause>(text);
    word::<OnExit>(text);
    word::<OnLeak>(text);
    word::<LogLevel>(text);
    word::<PolicySource>(text);
    word::<ExitKind>(text);
    word::<DeadLetterReason>(text);
    if let Ok(lifecycle) = serde_json::from_value::<Lifecycle>(Value::from(text)) {
        round(&lifecycle);
    }
}

fn shutdown(text: &str) {
    if let Some(shutdown) = parse::<Shutdown>(text) {
        assert_eq!(shutdown.to_string().parse(), Ok(shutdown));
        round(&shutdown);
        supervise(app(|child| child.shutdown(shutdown)));
        if let Shutdown::Timeout(time) = shutdown {
            supervise(app(|child| child.activation_timeout(time)));
            supervise(app(|child| child.failing_for(time)));
            supervise(app(|child| child).leak_timeout(time).stop_deadline(time));
            supervise(app(|child| child.on_exhausted(OnExhausted::Pause(time))).restarts(1, time));
        }
    }
    each(text, |_: Shutdown| {});
}

fn preset(text: &str) {
    if let Some(preset) = parse::<Preset>(text) {
        assert_eq!(preset.name(), text);
        assert_eq!(serde_json::to_value(&preset).unwrap(), text);
        check_delays(preset.backoff());
        supervise(app(|child| child).preset(preset));
    }
}

// --- Use -----------------------------------------------------------------------------------------

/// Asserts that no delay is longer than the cap, and with a hard floor none shorter than the first.
fn check_delays(backoff: &Backoff) {
    if let Err(problem) = backoff.check() {
        assert!(!problem.to_string().is_empty());
        return;
    }
    let written = serde_json::to_value(backoff).expect("a backoff without code");
    let time = |key: &str| {
        let time = written.get(key)?.as_str()?.parse().ok()?;
        let Shutdown::Timeout(time) = time else { return None };
        Some(time)
    };
    let is = |key: &str| written.get(key) == Some(&Value::Bool(true));
    let longest = time("max").into_iter().chain(time("cap")).min();
    let longest = longest.filter(|_| !is("soft_cap"));
    let shortest = time("min").filter(|_| is("hard_floor"));
    let shortest = shortest.map(|min| longest.map_or(min, |max| min.min(max)));

    let mut step = 0_u32;
    let steps = move || {
        step += 1;
        f64::from(step % 8) / 8.0
    };
    let draws: [fn() -> f64; 4] = [|| 0.0, || 1.0 - f64::EPSILON, || f64::NAN, || f64::INFINITY];
    let constant = draws.iter().flat_map(|draw| backoff.delays().random(*draw).take(25));
    for delay in constant.chain(backoff.delays().random(steps).take(100)) {
        assert!(longest.is_none_or(|longest| delay <= longest), "{delay:?}: {written}");
        assert!(shortest.is_none_or(|shortest| delay >= shortest), "{delay:?}: {written}");
    }
    for index in [0, 1, 31, 63, 64, 1_023, u32::MAX] {
        assert!(backoff.delay(index, &mut || 0.5).is_some(), "{index}: {written}");
    }
}

fn ends(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| -> Exit {
        match ctx.incarnation() {
            last if last > ENDS => ctx.cancelled().await,
            even if even % 2 == 0 => ctx.report_healthy(),
            _ => return Err("it fails".into()),
        }
        Ok(())
    })
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

/// Returns a tree with a child that ends a few times.
fn app(change: impl FnOnce(ChildSpec) -> ChildSpec) -> SupervisorBuilder {
    Supervisor::builder("app").child(change(ends("a"))).child(idle("b"))
}

/// Builds and runs a tree until it ends, is at rest, or waits for too long.
fn supervise(builder: SupervisorBuilder) {
    with_tree(builder, async |tree| {
        let ended = timeout(PATIENCE, tree.wait()).await;
        if let Ok(Err(error)) = &ended {
            assert!(!error.to_string().is_empty());
        }
        if let Ok(status) = tree.status().await {
            assert!(status.to_string().starts_with("app"), "{status}");
            serde_json::to_value(&status).expect("a status can be written");
        }
    });
}

/// Builds and starts a tree in a runtime of its own, calls `then`, and stops the tree.
fn with_tree(builder: SupervisorBuilder, then: impl AsyncFnOnce(&SupervisorHandle)) {
    let tree = match builder.build() {
        Ok(tree) => tree,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for warning in tree.warnings() {
        assert!(!warning.to_string().is_empty());
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        match timeout(PATIENCE, tree.start()).await {
            Ok(Ok(tree)) => {
                then(&tree).await;
                // The tree may have failed before.
                let _ = tree.stop("done").await;
            }
            Ok(Err(error)) => assert!(!error.to_string().is_empty()),
            // A child waits for its first start.
            Err(_) => {}
        }
    });
}

// --- Names and paths -----------------------------------------------------------------------------

fn name(text: &str) {
    let spec = idle(text);
    assert_eq!(spec.name(), text);
    let named = |error: String| {
        // Errors quote a name, and cut off one that is too long.
        let start: String = text.chars().take(10).collect();
        let quoted = format!("{start:?}");
        assert!(error.contains(quoted.trim_end_matches('"')), "{text:?}: {error}");
    };
    let below = match Supervisor::builder("app").child(spec.clone()).build() {
        Ok(_) => true,
        Err(error) => {
            named(error.to_string());
            false
        }
    };
    let root = Supervisor::builder(text).child(idle("a")).build();
    assert_eq!(root.is_ok(), below, "{text:?}");
    assert!(Supervisor::builder("app").child(idle("a").requires(text)).build().is_err());

    with_tree(Supervisor::builder("app"), async |tree| {
        match tree.start_child(spec.clone()).await {
            Ok(child) => {
                assert!(below, "{text:?}");
                assert_eq!((child.name(), child.path().name()), (text, text));
                assert_eq!(child.path().as_str(), format!("app/{text}"));
                let info = tree.which_child(text).await.unwrap();
                assert_eq!(info.path, *child.path());
            }
            Err(error) => {
                assert!(!below, "{text:?}: {error}");
                named(error.to_string());
            }
        }
    });
    let nest = Supervisor::builder("app").child(DynamicSupervisor::builder("nest"));
    with_tree(nest, async |tree| {
        let nest = tree.supervisor("nest").await.unwrap();
        let answer = nest.start_child(spec).await;
        assert_eq!(answer.is_ok(), below, "{text:?}");
        if let Ok(child) = answer {
            assert_eq!(child.name(), format!("{text}#1"));
            nest.stop_child(child.name()).await.unwrap();
        }
    });
}

fn path(text: &str) {
    let nest = Supervisor::builder("nest").child(idle("x"));
    let tree = Supervisor::builder("app").child(idle("db")).child(nest);
    with_tree(tree, async |tree| {
        let known = ["db", "nest", "nest/x"];
        let below = text.strip_prefix("app/").unwrap_or(text);
        let named = |error: &dyn Display| {
            let error = error.to_string();
            assert!(error.contains(text), "{text:?}: {error}");
        };
        match tree.which_child(text).await {
            Ok(child) => {
                assert!(known.contains(&below), "{text:?}");
                assert_eq!(child.path.as_str(), format!("app/{below}"));
            }
            Err(error) => {
                assert!(!known.contains(&below), "{text:?}: {error}");
                named(&error);
            }
        }
        match tree.supervisor(text).await {
            Ok(found) => assert_eq!((below, found.path().as_str()), ("nest", "app/nest")),
            Err(error) => named(&error),
        }
        let spec = tree.child_spec(text).await.map(drop);
        let terminated = tree.stop_child(text).await;
        let restarted = tree.otp().restart_child(text).await.map(drop);
        let deleted = tree.otp().delete_child(text).await;
        for answer in [spec, terminated, restarted, deleted] {
            let _ = answer.map_err(|error| named(&error));
        }
    });
}
