//! Each preset is pinned: its first delays, its reset, its limit, and that a stop ends its delay.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::{Instant, sleep};
use verger::policy::{Jitter, Preset, Trigger};
use verger::{
    ChildSpec, Context, ExitError, Lifecycle, Readiness, RestartType, RunError, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The times at which a child was started, in milliseconds.
#[derive(Clone)]
struct Starts {
    began: Instant,
    at: Arc<Mutex<Vec<u64>>>,
}

impl Starts {
    fn new() -> Self {
        Self { began: Instant::now(), at: Arc::default() }
    }

    fn count(&self) -> usize {
        self.at.lock().unwrap().len()
    }

    /// Returns the times between a failure and the next start, for runs of these lengths.
    fn waits(&self, lives: &[u64]) -> Vec<u64> {
        let at = self.at.lock().unwrap();
        let gaps = at.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.zip(lives).map(|(gap, life)| gap - life).collect()
    }

    /// A child that fails after each of these run times, and then stays up.
    fn child(&self, preset: &Preset, lives: &[u64]) -> ChildSpec {
        let (starts, lives) = (self.clone(), lives.to_vec());
        // The preset supervises the activation only.
        let activates = preset.name() == "signalpy";
        let run = move |ctx: Context| {
            let number = {
                let mut at = starts.at.lock().unwrap();
                at.push(u64::try_from(starts.began.elapsed().as_millis()).unwrap());
                at.len() - 1
            };
            let life = lives.get(number).copied();
            async move {
                let Some(life) = life else {
                    ctx.ready();
                    ctx.cancelled().await;
                    return Ok(());
                };
                sleep(ms(life)).await;
                Err::<(), ExitError>("again".into())
            }
        };
        let backoff = preset.backoff().clone().jitter(Jitter::None);
        let mut child = worker("child", run).backoff(backoff);
        if preset.name() == "elfo" {
            // elfo restarts nothing unless its users say so.
            child = child.restart(RestartType::Transient);
        }
        if activates { child.readiness(Readiness::Signal) } else { child }
    }
}

fn builder(preset: Preset) -> SupervisorBuilder {
    // A slot backoff may wait for any number of slots up to this one.
    Supervisor::builder("app").preset(preset).random(|| || 0.999)
}

/// Runs a child for these run times, without limits unless the delays depend on them.
async fn waits(preset: Preset, lives: &[u64]) -> Vec<u64> {
    let starts = Starts::new();
    let mut child = starts.child(&preset, lives);
    let mut app = builder(preset.clone());
    match preset.name() {
        "suture" => {}
        "signalpy" | "systemd" => child = child.own_restarts(1_000, ms(1)),
        _ => app = app.unlimited_restarts(),
    }
    let tree = app.child(child).build().unwrap();
    let (handle, run) = begin(tree);
    sleep(Duration::from_secs(1_000_000)).await;
    assert_eq!(starts.count(), lives.len() + 1, "{}", preset.name());
    if let Some(handle) = handle.await {
        handle.stop("enough").await.unwrap();
    }
    run.abort();
    starts.waits(lives)
}

/// Returns a tree that may never be up, and its handle once it is.
fn begin(
    tree: Supervisor,
) -> (impl Future<Output = Option<SupervisorHandle>>, tokio::task::AbortHandle) {
    let task = tokio::spawn(async move { tree.start().await.ok() });
    let abort = task.abort_handle();
    (async move { task.await.ok().flatten() }, abort)
}

#[tokio::test(start_paused = true)]
async fn the_first_twelve_delays_of_each_preset_are_pinned() {
    let doubled = [200, 400, 800, 1_600, 3_200, 6_400];
    let pekko = [3, 6, 12, 24].map(|secs| secs * 1_000);
    let none = [0; 5];
    let table: [(Preset, &[u64], u64); 14] = [
        (Preset::actor_ts(), &doubled, 10_000),
        (Preset::pekko_on_stop(), &pekko, 30_000),
        (Preset::pekko_on_failure(), &pekko, 30_000),
        (Preset::pekko_typed(), &doubled, 10_000),
        (Preset::xebia(), &[10, 30, 70, 150, 310, 630, 1_270, 2_550, 5_110, 0, 10, 30], 0),
        (Preset::signalpy(), &[1, 2, 4, 8, 16, 32].map(|secs| secs * 1_000), 60_000),
        (Preset::elfo(), &[5_000, 10_000, 20_000], 30_000),
        (Preset::otp(), &none, 0),
        (Preset::elixir(), &none, 0),
        (Preset::suture(), &[0, 0, 0, 0, 0, 15_000, 0, 0, 0, 0, 0, 15_000], 0),
        (Preset::oversight(), &none, 0),
        (Preset::systemd(), &[100], 100),
        (Preset::kubelet(), &[0, 10, 20, 40, 80, 160].map(|secs| secs * 1_000), 300_000),
        (Preset::pebble(), &[500, 1_000, 2_000, 4_000, 8_000, 16_000], 30_000),
    ];
    let names = table.each_ref().map(|(preset, ..)| preset.name());
    assert_eq!(names, Preset::all().map(|preset| preset.name()));
    for (preset, first, last) in table {
        let expected: Vec<_> = first.iter().copied().chain([last; 12]).take(12).collect();
        let name = preset.name();
        assert_eq!(waits(preset, &[0; 12]).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_preset_resets_after_a_long_enough_run() {
    // Two short runs, one that is just too short, and one that is just long enough.
    let table: [(Preset, u64, [u64; 4]); 8] = [
        (Preset::actor_ts(), 200, [200, 400, 800, 200]),
        (Preset::pekko_on_stop(), 3_000, [3_000, 6_000, 12_000, 3_000]),
        (Preset::pekko_on_failure(), 3_000, [3_000, 6_000, 12_000, 3_000]),
        (Preset::pekko_typed(), 5_100, [200, 400, 800, 200]),
        (Preset::elfo(), 5_000, [5_000, 10_000, 20_000, 0]),
        (Preset::pebble(), 30_000, [500, 1_000, 2_000, 500]),
        (Preset::kubelet(), 600_001, [0, 10_000, 20_000, 0]),
        // Only a manual reset resets it; its delays are all the same.
        (Preset::systemd(), 1_000_000, [100, 100, 100, 100]),
    ];
    for (preset, enough, expected) in table {
        let name = preset.name();
        assert_eq!(waits(preset, &[0, 0, enough - 1, enough]).await, expected, "{name}");
    }
}

/// Returns how often a child that fails at once is started until it is given up.
async fn starts_until_the_end(preset: Preset) -> (usize, Result<Lifecycle, String>) {
    let starts = Starts::new();
    let child = starts.child(&preset, &[0; 40]);
    let tree = builder(preset).child(child).build().unwrap();
    let long = sleep(Duration::from_secs(1_000_000));
    let ended: Result<(), RunError> = tree.with_graceful_shutdown(long).await;
    (starts.count(), ended.map(|()| Lifecycle::Stopped).map_err(|error| error.to_string()))
}

#[tokio::test(start_paused = true)]
async fn each_preset_gives_up_exactly_at_its_limit() {
    // Starts are one more than restarts: 41 means that the 40th restart was granted.
    let table = [
        (Preset::actor_ts(), 41, None),
        (Preset::pekko_on_stop(), 41, None),
        (Preset::pekko_on_failure(), 41, None),
        (Preset::pekko_typed(), 41, None),
        (Preset::xebia(), 41, None),
        (Preset::signalpy(), 4, None),
        (Preset::elfo(), 41, None),
        (Preset::otp(), 2, Some("gave up")),
        (Preset::elixir(), 4, Some("gave up")),
        (Preset::suture(), 41, None),
        (Preset::oversight(), 2, Some("gave up")),
        (Preset::systemd(), 5, None),
        (Preset::kubelet(), 41, None),
        (Preset::pebble(), 41, None),
    ];
    for (preset, expected, says) in table {
        let name = preset.name();
        let (starts, ended) = starts_until_the_end(preset).await;
        assert_eq!(starts, expected, "{name}");
        match (ended, says) {
            (Ok(_), None) => {}
            (Err(text), Some(says)) if text.contains(says) => {}
            (ended, _) => panic!("{name}: {ended:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_delay_of_each_preset() {
    for preset in Preset::all() {
        let name = preset.name();
        let starts = Starts::new();
        let child = starts.child(&preset, &[0; 40]);
        let tree = builder(preset.clone()).child(child).build().unwrap();
        let waits = !matches!(name, "otp" | "elixir" | "oversight");
        let stop = sleep(ms(1));
        let ended = tree.with_graceful_shutdown(stop).await;
        assert_eq!(ended.is_ok(), waits, "{name}: those that never wait have given up");
        let count = starts.count();
        assert_eq!(starts.began.elapsed(), if waits { ms(1) } else { ms(0) }, "{name}");
        sleep(Duration::from_secs(1_000)).await;
        assert_eq!(starts.count(), count, "{name}");
    }
}

/// Returns the incarnations of a child that ended in these ways, each after the preceding delay,
/// and whether its supervisor still runs.
async fn after(preset: Preset, trigger: Option<Trigger>, ends: &[End]) -> (u32, bool) {
    let fakes = FakeChildren::new();
    let mut child = fakes.child("child");
    if let Some(trigger) = trigger {
        child = child.restart(trigger);
    }
    let tree = start(builder(preset).child(child)).await;
    for &end in ends {
        fakes.end("child", end).await;
        sleep(Duration::from_secs(60)).await;
        settle().await;
    }
    match tree.which_child("child").await {
        Ok(info) => (info.incarnation, true),
        Err(_) => {
            (fakes.actions().iter().filter(|act| *act == "start child").count() as u32, false)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kin_50_on_failure_a_crash_restarts_and_a_normal_end_ends_all() {
    let on_failure = || Some(Trigger::failure());
    assert_eq!(after(Preset::actor_ts(), on_failure(), &[End::Error]).await, (2, true));
    assert_eq!(after(Preset::actor_ts(), on_failure(), &[End::Normal]).await, (1, false));
}

#[tokio::test(start_paused = true)]
async fn kin_51_on_stop_a_normal_end_restarts_and_a_crash_does_not() {
    let on_stop = || Some(Trigger::stop());
    assert_eq!(after(Preset::actor_ts(), on_stop(), &[End::Normal]).await, (2, true));
    assert_eq!(after(Preset::actor_ts(), on_stop(), &[End::Error]).await, (1, false));
}

#[tokio::test(start_paused = true)]
async fn kin_52_on_any_exit_both_a_crash_and_a_normal_end_restart() {
    assert_eq!(after(Preset::actor_ts(), None, &[End::Error, End::Normal]).await, (3, true));
}

#[tokio::test(start_paused = true)]
async fn kin_53_on_stop_a_child_that_ended_is_replaced_by_a_new_incarnation() {
    assert_eq!(after(Preset::pekko_on_stop(), None, &[End::Normal]).await, (2, true));
}

#[tokio::test(start_paused = true)]
async fn kin_59_on_failure_the_supervisor_ends_with_a_child_that_ends_normally() {
    assert_eq!(after(Preset::pekko_on_failure(), None, &[End::Error]).await, (2, true));
    assert_eq!(after(Preset::pekko_on_failure(), None, &[End::Normal]).await, (1, false));
}

/// A run that was long enough resets the backoff also if it was the first one.
#[tokio::test(start_paused = true)]
async fn elfo_restarts_at_once_after_a_long_first_run() {
    assert_eq!(waits(Preset::elfo(), &[5_000, 0, 0]).await, [0, 5_000, 10_000]);
    assert_eq!(waits(Preset::elfo(), &[4_999, 0]).await, [5_000, 10_000]);
}

/// As with the default decider: a child that doesn't start or is killed is stopped, and the backoff
/// supervisor ends with it.
#[tokio::test(start_paused = true)]
async fn pekko_on_failure_ends_with_a_child_that_does_not_start_or_is_killed() {
    let fakes = FakeChildren::new();
    fakes.next_starts("child", [NextStart::Ok, NextStart::Error]);
    let tree = start(builder(Preset::pekko_on_failure()).child(fakes.child("child"))).await;
    fakes.end("child", End::Error).await;
    sleep(ms(60_000)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["start child", "end child", "try child"]);
    tree.wait().await.unwrap();

    let fakes = FakeChildren::new();
    let tree = start(builder(Preset::pekko_on_failure()).child(fakes.child("child"))).await;
    tree.kill("child").await.unwrap();
    tree.wait().await.unwrap();

    let fakes = FakeChildren::new();
    let child = fakes.child("child").restart(Trigger::failure());
    let tree = start(builder(Preset::pekko_on_failure()).child(child)).await;
    tree.kill("child").await.unwrap();
    sleep(ms(60_000)).await;
    settle().await;
    assert_eq!(tree.which_child("child").await.unwrap().incarnation, 2, "the child's own trigger");
}

async fn shown(tree: &SupervisorHandle, path: &str) -> (Lifecycle, Option<&'static str>) {
    let info = tree.which_child(path).await.unwrap();
    (info.lifecycle, info.why)
}

#[tokio::test(start_paused = true)]
async fn seed3_08_under_its_preset_a_child_that_fails_when_active_stays_errored_alone() {
    let fakes = FakeChildren::new();
    let app = builder(Preset::signalpy()).child(fakes.child("a")).child(fakes.child("b"));
    let tree = start(app).await;
    fakes.end("a", End::Error).await;
    sleep(Duration::from_secs(100_000)).await;
    assert_eq!(shown(&tree, "a").await, (Lifecycle::Errored, Some("not restarted")));
    assert_eq!(shown(&tree, "b").await, (Lifecycle::Active, None));
    assert_eq!(fakes.actions(), ["start a", "start b", "end a"]);
    tree.resume("a").await.unwrap();
    assert_eq!(shown(&tree, "a").await, (Lifecycle::Active, None));
}

/// `leaf` fails four times, then `mid` does; at the fourth failure of `mid`, nobody above is left.
#[tokio::test(start_paused = true)]
async fn seed3_28_under_its_preset_a_failure_at_the_root_waits_for_a_manual_retry() {
    let fakes = FakeChildren::new();
    fakes.next_starts("leaf", [NextStart::Error; 16]);
    let mid = Supervisor::builder("mid").preset(Preset::signalpy()).child(fakes.child("leaf"));
    let app = builder(Preset::signalpy()).child(mid).child(fakes.child("other"));
    let tree = start(app).await;
    let began: Vec<_> = fakes.actions();
    assert_eq!(began.iter().filter(|act| *act == "try leaf").count(), 16);
    assert_eq!(began.last().unwrap(), "start other", "the rest moves on");
    sleep(Duration::from_secs(100_000)).await;
    assert_eq!(fakes.actions(), [""; 0], "nothing by itself");
    assert_eq!(shown(&tree, "mid").await, (Lifecycle::Errored, Some("given up")));

    tree.resume("mid").await.unwrap();
    assert_eq!(shown(&tree, "mid/leaf").await, (Lifecycle::Active, None));
    assert_eq!(fakes.actions(), ["start leaf"]);
}

/// The failure of an active supervisor is its supervisor's to handle.
#[tokio::test(start_paused = true)]
async fn seed3_27_under_its_preset_an_active_supervisor_that_gives_up_is_restarted() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid").preset(Preset::signalpy()).child(fakes.child("leaf"));
    let tree = start(builder(Preset::signalpy()).child(mid)).await;
    fakes.next_starts("leaf", [NextStart::Error; 4]);
    tree.restart("mid/leaf").await.unwrap_err();
    sleep(ms(1_000 + 2_000 + 4_000)).await;
    settle().await;
    assert_eq!(shown(&tree, "mid").await.0, Lifecycle::Restarting);
    sleep(ms(2_000)).await;
    settle().await;
    assert_eq!(shown(&tree, "mid/leaf").await, (Lifecycle::Active, None));
}

/// A unit that has hit its start limit is `failed` until `reset-failed` and `start`.
#[tokio::test(start_paused = true)]
async fn systemd_leaves_a_child_errored_at_its_limit_until_a_retry() {
    let fakes = FakeChildren::new();
    let app = builder(Preset::systemd()).child(fakes.child("a")).child(fakes.child("b"));
    let tree = start(app).await;
    for _ in 0..4 {
        fakes.end("a", End::Error).await;
        sleep(ms(100)).await;
        settle().await;
    }
    assert_eq!(shown(&tree, "a").await, (Lifecycle::Active, None), "the fifth start");
    fakes.end("a", End::Error).await;
    sleep(Duration::from_secs(100_000)).await;
    assert_eq!(shown(&tree, "a").await, (Lifecycle::Errored, Some("given up")));
    assert_eq!(shown(&tree, "b").await, (Lifecycle::Active, None));
    tree.resume("a").await.unwrap();
    for _ in 0..4 {
        fakes.end("a", End::Error).await;
        sleep(ms(100)).await;
        settle().await;
    }
    assert_eq!(shown(&tree, "a").await, (Lifecycle::Active, None), "the limit begins again");
}

#[test]
fn a_preset_is_read_by_its_name() {
    for preset in Preset::all() {
        let name = preset.name();
        assert_eq!(name.parse::<Preset>().unwrap().name(), name);
        let json = serde_json::to_value(&preset).unwrap();
        assert_eq!(serde_json::from_value::<Preset>(json).unwrap().name(), name);
    }
    let error = "kublet".parse::<Preset>().unwrap_err().to_string();
    assert!(error.starts_with("unknown preset `kublet`; write `actor_ts`, "), "{error}");
}
