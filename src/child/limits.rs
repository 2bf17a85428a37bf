//! What of a child spec is about failing too often: limits, what follows, and fallbacks.
//!
//! Kept as they are written; whether they make sense is checked with the rest of the spec. What
//! they come to is decided by the machine.

use std::sync::Arc;
use std::time::Duration;

use super::{ChildDefaults, ChildSpec};
use crate::error::{BuildError, BuildWarning};
use crate::path::{Path, Trail};
use crate::policy::{
    Backoff, ChildOptions, Intensity, OnExhausted, RestartPolicy, SetTwice, WrittenLimits,
};

impl ChildSpec {
    /// All that a policy says at once: each part that it has is set, as by the method of that name,
    /// and the others stay as they are. A limit that is set already is written twice, which is an
    /// error when the tree is built.
    ///
    /// For policies that come from a file. See [`RestartPolicy`].
    pub fn policy(mut self, policy: RestartPolicy) -> Self {
        self.edit().adopt(policy);
        self
    }

    /// Allows this child `max` restarts within `period`, which slides. One more, and it is given up:
    /// see [`on_exhausted`](Self::on_exhausted). Default: no limit of its own.
    ///
    /// The limits of a child stand beside that of its supervisor, which counts all children
    /// together; a restart has to pass all of them, and one that is refused is counted by none.
    /// They count each failure that would be followed by a restart: also those before the child was
    /// active, which the supervisor doesn't count as long as the child waits in between, so that a
    /// child can be given up that never comes up. A clean end that isn't followed by a restart is
    /// never counted.
    ///
    /// With [`Duration::MAX`] it is `max` restarts for as long as the supervisor lives.
    pub fn restarts(self, max: u32, period: Duration) -> Self {
        self.intensity(Intensity::sliding(max, period))
    }

    /// The same as [`restarts`](Self::restarts) with another kind of window.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.edit().limits.intensity(intensity);
        self
    }

    /// Allows this child `max` restarts in a row, however much time passes. It begins to count anew
    /// when its [`backoff`](Self::backoff) does: the child was active for long enough, or said that
    /// it is healthy. Default: any number.
    pub fn consecutive_restarts(mut self, max: u32) -> Self {
        self.edit().limits.consecutive(max);
        self
    }

    /// Gives the child up at a failure that comes later than `max` after its first one, unless its
    /// [`backoff`](Self::backoff) has begun anew in between. Default: it may fail for ever.
    pub fn failing_for(mut self, max: Duration) -> Self {
        self.edit().limits.failing_for(max);
        self
    }

    /// What follows when this child has failed too often, by its own limits or by its supervisor's.
    /// Default: what its [supervisor](crate::SupervisorBuilder::on_exhausted) says.
    pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.edit().on_exhausted = Some(on_exhausted);
        self
    }

    /// What takes the place of this child when it has failed too often, by its own limits or by its
    /// supervisor's: a simpler service instead of the usual one, for example.
    ///
    /// The fallback goes by the same name, at the same place among the children, and what requires
    /// the child then requires it; it starts when what the child itself requires is there. All else
    /// is its own: its restart type, limits, backoff and graces. It is started at once, with the
    /// rest of the child's range, uncharged, and counts from none. If it fails too often as well,
    /// its [`on_exhausted`](Self::on_exhausted) says what follows, or it has a fallback in turn.
    ///
    /// It stays until the supervisor itself is started anew, or the child is deleted and added
    /// again. Status shows it as *fallback*.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// async fn recommend(ctx: Context) {
    ///     ctx.cancelled().await
    /// }
    ///
    /// async fn bestsellers(ctx: Context) {
    ///     ctx.cancelled().await
    /// }
    ///
    /// let fallback = worker("bestsellers", bestsellers);
    /// let shop = Supervisor::builder("shop")
    ///     .child(worker("offers", recommend).consecutive_restarts(3).fallback(fallback))
    ///     .build()?;
    /// # drop(shop);
    /// # Ok::<_, verger::BuildError>(())
    /// ```
    pub fn fallback(mut self, spec: impl Into<Self>) -> Self {
        self.fallback = Some(Arc::new(spec.into()));
        self
    }

    /// Checks the fallback as well, and makes it one: of the same name, and without its own place.
    pub(super) fn with_fallback(
        mut self,
        trail: &mut Trail,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        let Some(fallback) = &self.fallback else { return Ok(self) };
        let named = ChildSpec::clone(fallback).named(self.name());
        if !named.requires.is_empty() {
            let (path, requirement) = (trail.join(self.name()), named.requires[0].clone());
            return Err(BuildError::FallbackRequires { path, requirement });
        }
        let mut fallback = named.resolve(trail, warnings)?;
        fallback.edit().is_fallback = true;
        self.edit().fallback = Some(Arc::clone(&fallback.options));
        self.fallback = Some(Arc::new(fallback));
        Ok(self)
    }
}

impl ChildDefaults {
    /// See [`ChildSpec::policy`].
    pub fn policy(mut self, policy: RestartPolicy) -> Self {
        self.options.adopt(policy);
        self
    }

    /// See [`ChildSpec::restarts`]. Each child counts for itself.
    pub fn restarts(self, max: u32, period: Duration) -> Self {
        self.intensity(Intensity::sliding(max, period))
    }

    /// See [`ChildSpec::intensity`]. Each child counts for itself.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.options.limits.intensity(intensity);
        self
    }

    /// See [`ChildSpec::consecutive_restarts`].
    pub fn consecutive_restarts(mut self, max: u32) -> Self {
        self.options.limits.consecutive(max);
        self
    }

    /// See [`ChildSpec::failing_for`].
    pub fn failing_for(mut self, max: Duration) -> Self {
        self.options.limits.failing_for(max);
        self
    }

    /// See [`ChildSpec::on_exhausted`].
    pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.options.on_exhausted = Some(on_exhausted);
        self
    }
}

/// Checks what a child says of its own restart. The path is put together for an error only: children
/// are added at run time by the million.
pub(crate) fn check_policy(
    policy: &RestartPolicy,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if let Some(Err(problem)) = policy.backoff.as_ref().map(Backoff::check) {
        return Err(BuildError::BadBackoff { path: path(), problem });
    }
    check_written(&policy.limits, policy.on_exhausted, path)
}

/// Checks the limits that were written for a child, or for all that say nothing else.
pub(crate) fn check_limits(
    options: &ChildOptions,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    check_written(&options.limits, options.on_exhausted, path)
}

fn check_written(
    written: &WrittenLimits,
    on_exhausted: Option<OnExhausted>,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    let limits = written.get();
    check_twice(written.twice.as_ref(), path)?;
    if let Some(intensity) = limits.intensity {
        check_intensity(intensity, path)?;
    }
    if limits.failing_for.is_some_and(|max| max.is_zero()) {
        let (path, example) = (path(), Duration::from_secs(60));
        return Err(BuildError::ZeroDuration { path, option: "`failing_for`", example });
    }
    match on_exhausted {
        Some(on_exhausted) => check_on_exhausted(on_exhausted, path),
        None => Ok(()),
    }
}

pub(crate) fn check_twice(
    twice: Option<&SetTwice>,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    let Some(SetTwice { first, second }) = twice.cloned() else { return Ok(()) };
    Err(BuildError::SetTwice { path: path(), first, second })
}

pub(crate) fn check_intensity(
    intensity: Intensity,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if let Some(max) = intensity.senseless_max() {
        return Err(BuildError::BadScore { path: path(), max });
    }
    if intensity.period().is_zero() {
        return Err(BuildError::ZeroPeriod { path: path(), max: intensity.max() });
    }
    Ok(())
}

pub(crate) fn check_on_exhausted(
    what: OnExhausted,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    match what {
        OnExhausted::Pause(Duration::ZERO) => {
            let (path, example) = (path(), Duration::from_secs(15));
            Err(BuildError::ZeroDuration { path, option: "pause", example })
        }
        OnExhausted::Escalate
        | OnExhausted::Park
        | OnExhausted::StopChild
        | OnExhausted::Pause(_)
        | OnExhausted::Exit(_) => Ok(()),
    }
}
