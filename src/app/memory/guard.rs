//! The guard: how often it looks, at which usage it acts, and what an application does then.

use std::borrow::Cow;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use tokio::time::sleep;

use super::usage::{KernelFiles, MemoryLimit, MemorySource, MemoryUsage};
use crate::Application;
use crate::app::companion::{Companion, RunStart, companion};
use crate::app::run::StopCause;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::panic::{Foreign, catch_panic};
use crate::spec::Supervisor;
use crate::subscriber::{self, warn};

/// Watches the memory usage, and reports when it reaches a part of the limit.
///
/// A guard is off until it is watched. See the [module](super) for the limit that applies.
///
/// ```
/// use std::time::Duration;
///
/// use verger::app::memory::MemoryGuard;
///
/// let guard = MemoryGuard::new().threshold(0.8).period(Duration::from_secs(10));
/// assert!(guard.check().is_ok());
/// assert_eq!(
///     MemoryGuard::new().threshold(80.0).check().unwrap_err().to_string(),
///     "the threshold of the memory guard is 80; write a part of the limit above 0 and at most 1, such as 0.9"
/// );
/// ```
#[must_use = "a guard does nothing until it is watched"]
#[derive(Clone)]
pub struct MemoryGuard {
    threshold: f64,
    period: Duration,
    source: Source,
    restart: Option<Arc<str>>,
}

#[derive(Clone)]
enum Source {
    Kernel(KernelFiles),
    Custom(Foreign<dyn MemorySource>),
}

/// An invalid value of a [`MemoryGuard`].
///
/// The example of [`MemoryGuard`] shows one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryGuardProblem {
    /// The threshold is not a part of the limit.
    #[error(
        "the threshold of the memory guard is {threshold}; write a part of the limit above 0 and at \
         most 1, such as 0.9"
    )]
    Threshold {
        /// The value that was set.
        threshold: String,
    },
    /// The period is zero, so the guard would do nothing else than look.
    #[error(
        "the period of the memory guard is zero; write a time such as `Duration::from_secs(3)`"
    )]
    ZeroPeriod,
}

impl Default for MemoryGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryGuard {
    /// Returns a guard that looks every 3 s and acts at 90 % of the limit.
    pub fn new() -> Self {
        Self {
            threshold: 0.9,
            period: Duration::from_secs(3),
            source: Source::Kernel(KernelFiles { root: PathBuf::from("/") }),
            restart: None,
        }
    }

    /// Sets the part of the limit at which the guard acts. The default is 0.9.
    ///
    /// Valid are numbers above 0 and at most 1.
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets how often the guard looks. The default is 3 s. Zero is invalid.
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Sets the directory that contains `proc` and `sys/fs/cgroup`. The default is `/`.
    ///
    /// It is for tests, and for a container that mounts the files of its host elsewhere. Replaces a
    /// [`source`](Self::source).
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.source = Source::Kernel(KernelFiles { root: root.into() });
        self
    }

    /// Sets a source of the usage, instead of the files of the kernel.
    pub fn source(mut self, source: impl MemorySource + 'static) -> Self {
        self.source = Source::Custom(Foreign::new(Arc::new(source)));
        self
    }

    /// Restarts a child, or everything below a supervisor, instead of ending the program.
    ///
    /// `path` is the path of that child below the root, such as `cache` or `ingest/decoder`. It is for the
    /// part of a program that is known to leak, and is restarted once a minute at most. The setting has an effect where an application runs the
    /// guard. [`watch`](Self::watch) only reports.
    pub fn restart(mut self, path: impl Into<String>) -> Self {
        self.restart = Some(path.into().into());
        self
    }

    /// Returns the path of the child that is restarted, if any.
    pub(crate) fn restarts(&self) -> Option<&str> {
        self.restart.as_deref()
    }

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// [`MemoryGuardProblem`] names the first value that is invalid.
    pub fn check(&self) -> Result<(), MemoryGuardProblem> {
        let threshold = self.threshold;
        // Not the opposite comparison, which is false for NaN as well.
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(MemoryGuardProblem::Threshold { threshold: threshold.to_string() });
        }
        if self.period.is_zero() {
            return Err(MemoryGuardProblem::ZeroPeriod);
        }
        Ok(())
    }

    /// Returns a future that resolves when the usage reaches the threshold.
    ///
    /// The guard looks first after one period. A usage that can't be read is logged once, with target
    /// `verger::memory`, and tried again after each period. The memory of the [machine](MemoryLimit::Machine) is an
    /// estimate of the kernel, so it has to reach the threshold twice in a row. The output is a [`StopCause`] with exit
    /// code 4.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped. A new one waits a whole period again.
    pub fn watch(
        self,
    ) -> Result<impl Future<Output = MemoryPressure> + Send + 'static, MemoryGuardProblem> {
        self.check()?;
        Ok(async move {
            let (mut failed, mut reached) = (false, false);
            loop {
                tokio::time::sleep(self.period).await;
                match self.usage() {
                    Ok(usage) if usage.ratio() >= self.threshold => {
                        // One wrong estimate must not stop a service.
                        let is_estimate = usage.found == MemoryLimit::Machine;
                        if !is_estimate || std::mem::replace(&mut reached, true) {
                            return MemoryPressure { usage };
                        }
                    }
                    Ok(_) => reached = false,
                    Err(error) if !failed => {
                        failed = true;
                        let (error, retry_after) = (error.to_string(), self.period);
                        warn!(target: "verger::memory", error, ?retry_after, "can't read the memory usage");
                    }
                    Err(_) => {}
                }
            }
        })
    }

    fn usage(&self) -> io::Result<MemoryUsage> {
        match &self.source {
            Source::Kernel(files) => files.usage(),
            // With the text of the error, which may panic as well.
            Source::Custom(source) => catch_panic(|| {
                source.usage().map_err(|error| io::Error::new(error.kind(), error.to_string()))
            })
            .unwrap_or_else(|| Err(io::Error::other("the source panicked"))),
        }
    }
}

impl fmt::Debug for MemoryGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("MemoryGuard");
        fields.field("threshold", &self.threshold).field("period", &self.period);
        if let Source::Kernel(files) = &self.source {
            fields.field("root", &files.root);
        }
        fields.field("restart", &self.restart).finish_non_exhaustive()
    }
}

/// The memory usage has reached the threshold of a [`MemoryGuard`].
///
/// `Display` writes the usage, such as `92 % of 512 MiB (cgroup v2)`. As a [`StopCause`] it is
/// `memory at 92 % of 512 MiB (cgroup v2)`.
///
/// The example of [`memory`](crate::app::memory) shows it as the cause of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPressure {
    /// The usage that was found.
    pub usage: MemoryUsage,
}

impl fmt::Display for MemoryPressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.usage, f)
    }
}

impl StopCause for MemoryPressure {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Owned(format!("memory at {self}"))
    }

    fn exit_code(&self) -> u8 {
        4
    }
}

/// How long the guard waits after it has restarted a child.
const AFTER_RESTART: Duration = Duration::from_secs(60);

impl Application {
    /// Guards the memory: when its usage reaches a part of the limit, the tree is stopped in its stages, or a
    /// part of it is [restarted](MemoryGuard::restart).
    ///
    /// The cause of the stop is the usage: `memory at 92 % of 512 MiB (cgroup v2)`. The exit code is then 4, so that a
    /// service manager which restarts the program after failures does so. The first signal after that is ignored, and
    /// the next one ends the process. Default: no guard.
    pub fn memory(mut self, guard: MemoryGuard) -> Self {
        self.companions.memory = companion(guard);
        self
    }
}

#[async_trait]
impl Companion for MemoryGuard {
    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        self.check().map_err(|problem| RunError::MemoryGuard { problem: problem.to_string() })
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        run.stop_on(guarded(self.clone(), run.handle()));
    }
}

/// Resolves when the memory usage is a reason to stop. Restarts a part of the tree instead, if the guard says
/// so.
async fn guarded(guard: MemoryGuard, tree: SupervisorHandle) -> MemoryPressure {
    loop {
        // Its values were checked.
        let Ok(watch) = guard.clone().watch() else { return pending().await };
        let pressure = watch.await;
        let Some(child) = guard.restarts() else { return pressure };
        let usage = pressure.to_string();
        subscriber::warn!(target: "verger::memory", %child, usage, "restarting because of the memory usage");
        if let Err(error) = tree.restart(child).await {
            let error = error.to_string();
            subscriber::error!(target: "verger::memory", %child, error, "can't restart");
        }
        // A usage that has another cause must not restart the child all the time.
        sleep(AFTER_RESTART).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A source that follows a script, and repeats the last entry.
    fn script(
        looks: &Arc<AtomicUsize>,
        usages: &'static [Result<u64, &'static str>],
    ) -> impl MemorySource + 'static {
        let looks = Arc::clone(looks);
        move || {
            let look = looks.fetch_add(1, Ordering::Relaxed);
            match usages[look.min(usages.len() - 1)] {
                Ok(used) => Ok(MemoryUsage::new(used, 1000)),
                Err("panic") => panic!("on purpose"),
                Err(error) => Err(io::Error::other(error)),
            }
        }
    }

    async fn watched(guard: MemoryGuard) -> (Duration, String) {
        let start = crate::clock::now();
        let pressure = guard.watch().unwrap().await;
        (crate::clock::now() - start, pressure.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn seed4_42_memory_is_looked_at_every_3_s_and_trips_at_90_percent() {
        let looks = Arc::default();
        let guard = MemoryGuard::new().source(script(&looks, &[Ok(100), Ok(899), Ok(900)]));
        let expected = (Duration::from_secs(9), "90 % of 1000 B".to_owned());
        assert_eq!(watched(guard).await, expected);
        assert_eq!(looks.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn threshold_and_period_are_settings() {
        let looks = Arc::default();
        let source = script(&looks, &[Ok(499), Ok(500)]);
        let guard = MemoryGuard::new().source(source).threshold(0.5);
        let guard = guard.period(Duration::from_millis(250));
        let expected = (Duration::from_millis(500), "50 % of 1000 B".to_owned());
        assert_eq!(watched(guard).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_fails_or_panics_is_called_again() {
        let looks = Arc::default();
        let source = script(&looks, &[Err("no such file"), Err("panic"), Ok(0), Ok(1000)]);
        let (after, text) = watched(MemoryGuard::new().source(source)).await;
        assert_eq!((after.as_secs(), &*text), (12, "100 % of 1000 B"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_estimate_of_the_machine_is_not_enough() {
        let looks = AtomicUsize::new(0);
        let source = move || {
            let used = [1000, 0, 950, 1000, 0];
            let used = used[looks.fetch_add(1, Ordering::Relaxed)];
            Ok(MemoryUsage { used, limit: 1000, found: MemoryLimit::Machine })
        };
        let expected = (Duration::from_secs(12), "100 % of 1000 B (machine)".to_owned());
        assert_eq!(watched(MemoryGuard::new().source(source)).await, expected);
    }

    #[test]
    fn invalid_values_are_refused() {
        for threshold in [0.0, -0.1, 1.1, 90.0, f64::INFINITY, f64::NAN] {
            let guard = MemoryGuard::new().threshold(threshold);
            let problem = guard.clone().watch().err().unwrap();
            assert!(matches!(problem, MemoryGuardProblem::Threshold { .. }), "{guard:?}");
        }
        let guard = MemoryGuard::new().threshold(1.0).period(Duration::ZERO);
        assert_eq!(guard.check(), Err(MemoryGuardProblem::ZeroPeriod));
        assert_eq!(guard.period(Duration::MAX).check(), Ok(()));
    }

    #[test]
    fn a_pressure_is_a_cause() {
        let pressure = MemoryPressure { usage: MemoryUsage::new(23, 25) };
        assert_eq!(pressure.cause(), "memory at 92 % of 25 B");
        assert_eq!(MemoryGuard::new().restart("a/b").restarts(), Some("a/b"));
        assert_eq!(MemoryGuard::new().restarts(), None);
    }
}
