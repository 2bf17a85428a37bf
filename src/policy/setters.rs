//! The setters that specs, defaults and policies share, each written and documented once.
//!
//! A setter expands to a method of the type that invokes the macro. `$values` is an expression for
//! the [`RestartPolicy`](super::RestartPolicy) that the method writes to, and `$options` for the `ChildOptions`.

/// Setters of a restart policy: for `ChildSpec`, `ChildDefaults` and `RestartPolicy`.
macro_rules! policy_setters {
    ($self:ident => $values:expr) => {
        /// Sets which exits of the child are followed by a restart.
        ///
        /// Takes a [`RestartType`](crate::RestartType) or a [`Trigger`](crate::policy::Trigger). Default:
        /// [`RestartType::Permanent`](crate::RestartType::Permanent), after every exit.
        ///
        /// The value of a spec replaces the supervisor's default as a whole. The exceptions that
        /// the spec adds itself are kept, and are evaluated before those of the trigger:
        /// [`restart_if`](crate::ChildSpec::restart_if), [`leave_down_if`](crate::ChildSpec::leave_down_if),
        /// [`on_error`](crate::ChildSpec::on_error) and [`on_exit`](crate::ChildSpec::on_exit). The
        /// order of the calls doesn't matter.
        ///
        /// The value of a policy that a running child sets for itself
        /// ([`set_restart_policy`](crate::Context::set_restart_policy)) also replaces these
        /// exceptions. The spec of the child is kept even if the value is
        /// [`RestartType::Temporary`](crate::RestartType::Temporary), unless the spec is temporary
        /// itself or the supervisor is dynamic.
        ///
        /// ```
        /// use verger::{Context, RestartType, worker};
        ///
        /// # async fn import(_ctx: Context) {}
        /// // The supervisor restarts it after a failure, and leaves it down once it has returned `Ok`.
        /// let importer = worker("importer", import).restart(RestartType::Transient);
        /// # drop(importer);
        /// ```
        pub fn restart(mut $self, restart: impl Into<$crate::policy::Trigger>) -> Self {
            $values.restart = Some(restart.into());
            $self
        }

        /// Sets the delay before each restart.
        ///
        /// Default: 200 ms, doubling to 30 s, plus up to 20 % jitter.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Backoff, Context, worker};
        ///
        /// # async fn poll(ctx: Context) { ctx.cancelled().await }
        /// let wait = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60));
        /// let poller = worker("poller", poll).backoff(wait);
        /// # drop(poller);
        /// ```
        pub fn backoff(mut $self, backoff: impl Into<$crate::policy::Backoff>) -> Self {
            $values.backoff = Some(backoff.into());
            $self
        }

        /// Limits each child to `max` restarts within a sliding `period`. Default: 12 in 5 min for a
        /// worker, and 3 for a supervisor.
        ///
        /// The default applies only if no limit is written: none for the child (here, in the supervisor's
        /// defaults, its preset, a file or a call), and none for all children together
        /// ([`SupervisorBuilder::restarts`](crate::SupervisorBuilder::restarts)). Nor does it apply to a backoff whose
        /// delays may end, an iterator or a custom curve: their end is the limit. Its period is longer than 5 min if
        /// the delays, graces and timeouts of that many restarts need more, and contains the time that a
        /// supervisor takes to give up. With the default backoff, a worker that keeps failing is given up after
        /// 171 to 205 s, so an outage of two minutes ends no program.
        ///
        /// A child that exceeds the limit is handled by [`on_exhausted`](Self::on_exhausted). If a limit for all
        /// children together is written as well, a restart must be within both. A restart that one limit refuses
        /// isn't charged to the other.
        ///
        /// A limit that is written for a child is charged every failure that would be followed by a restart, even
        /// before the child is active, and a clean exit that is followed by a restart. The default is charged what
        /// the limit of a supervisor is charged. A period that you write is never extended. With
        /// [`Duration::MAX`](std::time::Duration::MAX) a restart counts for as long as the supervisor lives.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Context, worker};
        ///
        /// # async fn poll(ctx: Context) { ctx.cancelled().await }
        /// let poller = worker("poller", poll).own_restarts(3, Duration::from_secs(60));
        /// # drop(poller);
        /// ```
        pub fn own_restarts($self, max: u32, period: std::time::Duration) -> Self {
            $self.intensity($crate::policy::Intensity::sliding(max, period))
        }

        /// Limits the restarts of each child by a window other than a sliding one.
        ///
        /// See [`own_restarts`](Self::own_restarts).
        pub fn intensity(mut $self, intensity: $crate::policy::Intensity) -> Self {
            $values.limits.intensity(intensity);
            $self
        }

        /// Removes the restart limits of each child that are set at a lower precedence, and the default one.
        ///
        /// On a spec it removes the limits of the supervisor's defaults and preset, in a file or call also those of
        /// the spec. A limit for all children together
        /// ([`SupervisorBuilder::restarts`](crate::SupervisorBuilder::restarts)) still applies. Together with
        /// [`own_restarts`](Self::own_restarts) or [`intensity`](Self::intensity) it is an error when the tree is
        /// built; other limits can be set beside it.
        pub fn unlimited_restarts(mut $self) -> Self {
            $values.limits.unlimited();
            $self
        }

        /// Allows each child `max` consecutive restarts, independent of time. Default: no limit.
        ///
        /// The count starts again when the [`backoff`](Self::backoff) resets: when the child was
        /// active for long enough, or when it calls
        /// [`report_healthy`](crate::Context::report_healthy).
        pub fn consecutive_restarts(mut $self, max: u32) -> Self {
            $values.limits.consecutive(max);
            $self
        }

        /// Gives up a child that fails more than `max` after its first failure. Default: no limit.
        ///
        /// The time starts again when the [`backoff`](Self::backoff) resets.
        pub fn failing_for(mut $self, max: std::time::Duration) -> Self {
            $values.limits.failing_for(max);
            $self
        }

        /// Sets what happens when the child exceeds a restart limit, its own or its supervisor's.
        ///
        /// Default: the value of the supervisor
        /// ([`SupervisorBuilder::on_exhausted`](crate::SupervisorBuilder::on_exhausted)).
        ///
        /// ```
        /// use verger::policy::OnExhausted;
        /// use verger::{Context, worker};
        ///
        /// # async fn mail(ctx: Context) { ctx.cancelled().await }
        /// // The program can do without it: the supervisor leaves it down and keeps its siblings.
        /// let mailer = worker("mailer", mail).on_exhausted(OnExhausted::Park);
        /// # drop(mailer);
        /// ```
        pub fn on_exhausted(mut $self, on_exhausted: $crate::policy::OnExhausted) -> Self {
            $values.on_exhausted = Some(on_exhausted);
            $self
        }

        /// Sets the log level of failures. Default: `WARN` for every failure.
        pub fn failure_log(mut $self, log: $crate::policy::FailureLog) -> Self {
            $values.failure_log = Some(log);
            $self
        }
    };
}

/// Setters of a child: for `ChildSpec` and `ChildDefaults`.
macro_rules! child_setters {
    ($self:ident => $options:expr) => {
        /// Sets all values of a policy at once.
        ///
        /// Values that the policy leaves open are unchanged. A limit that is set in both is an
        /// error when the tree is built. See [`RestartPolicy`](crate::policy::RestartPolicy), which can be
        /// read from a file.
        pub fn policy(mut $self, policy: $crate::policy::RestartPolicy) -> Self {
            $options.values.policy.merge(policy);
            $self
        }

        /// Sets how long the child may take to stop before it is aborted.
        ///
        /// Takes a [`Duration`](std::time::Duration) or a [`Shutdown`](crate::Shutdown). Default:
        /// 5 s, as in OTP. For a supervisor it is [`Shutdown::Infinity`](crate::Shutdown::Infinity),
        /// because its children have graces of their own; the supervisor's defaults don't change
        /// that.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Context, worker};
        ///
        /// # async fn write(ctx: Context) { ctx.cancelled().await }
        /// let writer = worker("writer", write).shutdown(Duration::from_secs(30));
        /// # drop(writer);
        /// ```
        pub fn shutdown(mut $self, shutdown: impl Into<$crate::policy::Shutdown>) -> Self {
            $options.values.shutdown = Some(shutdown.into());
            $self
        }

        /// Sets how long the child may take to become ready. Default: no limit.
        ///
        /// A child that exceeds the limit fails as
        /// [`ActivationTimedOut`](crate::ExitReason::ActivationTimedOut).
        pub fn activation_timeout(mut $self, timeout: std::time::Duration) -> Self {
            $options.values.activation_timeout = Some(timeout);
            $self
        }

        /// Sets how long the active child may go without a
        /// [`heartbeat`](crate::Context::heartbeat). Default: no watchdog.
        ///
        /// A child that misses its heartbeats has failed as [`Hung`](crate::ExitReason::Hung): it is
        /// cancelled, aborted after its grace, and restarted by its restart type. The time counts from
        /// the moment when the child became [`Active`](crate::Lifecycle::Active), and again from each
        /// heartbeat. While the child is activating or stopping, it isn't watched, nor while it
        /// [waits on purpose](crate::Context::waiting).
        ///
        /// If the runtime itself was late, by more than a quarter of the time and at least by a second,
        /// all its children get the whole time once more.
        ///
        /// A default doesn't apply to supervisors, which send no heartbeats.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Context, worker};
        ///
        /// async fn poll(ctx: Context) {
        ///     while !ctx.is_cancelled() {
        ///         ctx.heartbeat();
        ///         // Handle one item.
        /// #       break;
        ///     }
        /// }
        ///
        /// let poller = worker("poller", poll).watchdog(Duration::from_secs(30));
        /// # drop(poller);
        /// ```
        pub fn watchdog(mut $self, interval: std::time::Duration) -> Self {
            $options.values.watchdog = Some(interval);
            $self
        }

        /// Sets how long an incarnation of the child may be active. Default: no limit.
        ///
        /// A child that is [`Active`](crate::Lifecycle::Active) for longer has failed as
        /// [`TimedOut`](crate::ExitReason::TimedOut): it is cancelled, aborted after its grace, and restarted by
        /// its restart type. The next incarnation has the whole time again. It corresponds to systemd's
        /// `RuntimeMaxSec`.
        ///
        /// The time in which the child is activating or stopping doesn't count. For a limit of each run of a
        /// periodic child see `Every::limit_run`.
        ///
        /// A default doesn't apply to supervisors, whose children it limits one by one.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Context, RestartType, worker};
        ///
        /// async fn import(_ctx: Context) {
        ///     // Import a file.
        /// }
        ///
        /// let import = worker("import", import)
        ///     .restart(RestartType::Transient)
        ///     .run_time_limit(Duration::from_secs(5 * 60));
        /// # drop(import);
        /// ```
        pub fn run_time_limit(mut $self, limit: std::time::Duration) -> Self {
            $options.values.run_time_limit = Some(limit);
            $self
        }

        /// Sets what happens to a child that is still running after it was aborted.
        ///
        /// Default: [`OnLeak::Restart`](crate::policy::OnLeak::Restart).
        pub fn on_leak(mut $self, on_leak: $crate::policy::OnLeak) -> Self {
            $options.values.on_leak = Some(on_leak);
            $self
        }

        /// Takes the delay before a restart from the error of the child, such as a `Retry-After`.
        ///
        /// If `delay` returns `None`, the [`backoff`](Self::backoff) applies.
        ///
        /// The returned delay is used as it is, without jitter and without the bounds of the
        /// backoff. It counts from the failure. Limits count the restart as usual. The backoff
        /// doesn't advance: the next failure without a delay of its own continues where the backoff
        /// was. A delay of zero restarts the child at once, which is always charged to the
        /// supervisor. To exempt the restart from the supervisor's limit, see
        /// [`OnExit::RestartUncharged`](crate::policy::OnExit::RestartUncharged).
        ///
        /// The error is found as for [`Trigger`](crate::policy::Trigger#errors-as-a-criterion): the error
        /// that the child returned, or one of its causes. If several functions are set, the first
        /// answer counts, and those of a spec are called before those of the defaults. Each is
        /// called at most once for a failure, in the task of the supervisor, so it must not block.
        /// A panic counts as `None`.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::policy::OnExit;
        /// use verger::{Context, worker};
        ///
        /// #[derive(Debug, thiserror::Error)]
        /// #[error("too many requests")]
        /// struct TooManyRequests {
        ///     retry_after: Option<Duration>,
        /// }
        ///
        /// async fn poll(ctx: Context) -> Result<(), TooManyRequests> {
        ///     ctx.cancelled().await;
        ///     Ok(())
        /// }
        ///
        /// let poller = worker("poller", poll)
        ///     .retry_after(|error: &TooManyRequests| error.retry_after)
        ///     .on_error(|_: &TooManyRequests| true, OnExit::RestartUncharged);
        /// # drop(poller);
        /// ```
        pub fn retry_after<E: std::error::Error + 'static>(
            mut $self,
            delay: impl Fn(&E) -> Option<std::time::Duration> + Send + Sync + 'static,
        ) -> Self {
            $options.retry_after.add(delay);
            $self
        }
    };
}

pub(crate) use {child_setters, policy_setters};
