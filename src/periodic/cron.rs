//! The builder of children that run at the times of a cron expression.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use croner::errors::CronError;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::calendar::{Calendar, Ticks};
use super::every::job_spec;
use super::life::Job;
use super::options::{Clock, Missed, Overrun, RunOptions, ScheduleProblem, bad, run_setters};
use super::plan::RunPlan;
use super::run::RunContext;
use crate::child::ChildSpec;
use crate::error::BuildWarning;
use crate::exit::Outcome;
use crate::path::Path;

/// Describes a child that calls a function at the times of a cron expression (feature `cron`).
///
/// The expression has five fields: minute, hour, day of the month, month, day of the week. With six, the first one is
/// the second. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are expressions as well. The crate `croner`
/// describes [all that it reads](https://docs.rs/croner).
///
/// The times are in UTC, unless [`in_tz`](Cron::in_tz) names a time zone. Where clocks are changed, the expression
/// decides what becomes of the local times that don't exist or occur twice:
///
/// | expression | a local time that doesn't exist | a local time that occurs twice |
/// | --- | --- | --- |
/// | one time of day, such as `30 2 * * *` | the run begins where the gap ends | one run, at the first |
/// | any other, such as `*/15 * * * *` | no run | two runs |
///
/// Which runs were missed is known from the first start of the child on: nothing is kept when the process ends. With a
/// lease and [`Missed::OnceWithin`], the planned time of the last run is stored with the lease
/// before the run begins. A hand-over between processes then neither repeats a run nor loses one. A failed
/// run doesn't fail the child: for failed runs, cancellation and restarts see [`every`](crate::every).
///
/// If both the day of the month and the day of the week are restricted, the child runs on days that match either one, and
/// on days that match both with a `+` before the day of the week: `0 9 */2 * +1`. Vixie cron always takes both if one of
/// them begins with a `*`; [`build`](crate::SupervisorBuilder::build) warns of an expression that means something else
/// there.
///
/// The wall clock is read at least once a minute, so that a change and a suspended machine are noticed. If it goes back by
/// more than a minute, an expression with a `*` as its minute or its hour follows it: `*/5 * * * *` runs at the times that
/// come again. No run of any other expression is repeated, unless the clock goes back by more than three hours: it was
/// wrong then, and the plan starts again.
///
/// ```
/// use std::time::Duration;
///
/// use verger::periodic::{Missed, RunContext};
/// use verger::{Exit, Supervisor, cron};
///
/// async fn back_up(_run: RunContext) -> Exit {
///     // Back up.
///     Ok(())
/// }
///
/// let backup = cron("backup", "30 4 * * *", back_up)
///     .in_tz("Europe/Berlin")
///     .missed(Missed::OnceWithin(Duration::from_secs(6 * 3600)))
///     .unhealthy_after(1);
/// let app = Supervisor::builder("app").child(backup).build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
#[track_caller]
pub fn cron<F, R, O>(name: impl Into<String>, expression: impl Into<String>, run: F) -> Cron<F>
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let plan = Options::default();
    let (runs, defined_at) = (RunOptions::default(), Location::caller());
    let (name, expression) = (name.into(), expression.into());
    Cron { name, expression, zone: None, plan, runs, function: run, defined_at }
}

/// A child that calls a function at the times of a cron expression, made by [`cron`].
///
/// Give it to a supervisor, or call [`spec`](Self::spec) to set the options that all children have. An expression or a
/// time zone that can't be used, and a limit or a number of failed runs of zero, are errors when the tree is built.
///
/// The example of [`cron`] gives one to a supervisor.
#[must_use = "it does nothing until it is given to a supervisor"]
pub struct Cron<F> {
    name: String,
    expression: String,
    zone: Option<String>,
    plan: Options,
    runs: RunOptions,
    function: F,
    defined_at: &'static Location<'static>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Options {
    missed: Missed,
    jitter: Duration,
    overrun: Overrun,
}

impl<F> Cron<F> {
    /// Sets the time zone of the expression: a name of the IANA database such as `Europe/Berlin`. Default: UTC.
    ///
    /// The database is that of the system, often a package `tzdata`. Where there is none, use the crate `jiff` with its
    /// feature `tzdb-bundle-always`.
    pub fn in_tz(mut self, name: impl Into<String>) -> Self {
        self.zone = Some(name.into());
        self
    }

    /// Sets what happens to a run that couldn't begin in time. Default: [`Missed::Skip`].
    pub fn missed(mut self, missed: Missed) -> Self {
        self.plan.missed = missed;
        self
    }

    run_setters!();
}

impl<F, R, O> Cron<F>
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    /// Returns the spec of the child, for the options that all children have.
    pub fn spec(self) -> ChildSpec {
        let Self { name, expression, zone, plan, runs, function, defined_at } = self;
        let parsed = parse(&expression)
            .and_then(|cron| Ok((cron, zone.as_deref().map_or(Ok(TimeZone::UTC), find_zone)?)));
        let missed_within = match plan.missed {
            Missed::Skip => None,
            Missed::OnceWithin(deadline) => Some(deadline),
        };
        let Options { jitter, overrun, .. } = plan;
        let problem = parsed.as_ref().err().cloned();
        let follows_clock = follows_clock(&expression);
        let ticks = Box::new(parsed);
        let calendar = Calendar { ticks, missed_within, jitter, overrun, follows_clock };
        let calendar = Arc::new(calendar);
        let plan = RunPlan::Calendar(Arc::clone(&calendar));
        let text = format!("{expression} in {}", zone.as_deref().unwrap_or("UTC")).into();
        let clock = runs.clock.clone();
        let check = move |path: &dyn Fn() -> Path, warnings: &mut Vec<BuildWarning>| {
            overrun.check(path)?;
            if let Some(problem) = &problem {
                return Err(bad(path, problem.clone()));
            }
            if calendar.ticks.after(clock.read()).is_none() {
                let expression = expression.clone();
                return Err(bad(path, ScheduleProblem::NeverDue { expression }));
            }
            if let Some(both) = both_days(&expression) {
                let (path, expression) = (path(), expression.clone());
                warnings.push(BuildWarning::EitherDay { path, expression, both });
            }
            Ok(())
        };
        job_spec(name, Job { plan, text, runs, function }, Box::new(check), defined_at)
    }
}

impl<F, R, O> From<Cron<F>> for ChildSpec
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    fn from(cron: Cron<F>) -> Self {
        cron.spec()
    }
}

impl<F> fmt::Debug for Cron<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron")
            .field("name", &self.name)
            .field("expression", &self.expression)
            .field("zone", &self.zone)
            .field("plan", &self.plan)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

/// A cron expression and its time zone, or why it can't be used. `croner` decides which ticks a local time stands for.
type Parsed = Result<(croner::Cron, TimeZone), ScheduleProblem>;

impl Ticks for Parsed {
    fn after(&self, at: SystemTime) -> Option<SystemTime> {
        let (cron, zone) = self.as_ref().ok()?;
        let at = Timestamp::try_from(at).ok()?.to_zoned(zone.clone());
        Some(cron.find_next_occurrence(&at, false).ok()?.into())
    }

    fn before(&self, at: SystemTime, included: bool) -> Option<SystemTime> {
        let (cron, zone) = self.as_ref().ok()?;
        let at = Timestamp::try_from(at).ok()?;
        let is_within_second = included || at.subsec_nanosecond() != 0;
        let found = cron.find_previous_occurrence(&at.to_zoned(zone.clone()), is_within_second);
        Some(found.ok()?.into())
    }
}

/// Whether the minute or the hour is a `*`, with or without a step, as in Vixie cron.
fn follows_clock(expression: &str) -> bool {
    let fields: Vec<_> = expression.split_whitespace().collect();
    let time = match &*fields {
        [nickname] => return nickname.eq_ignore_ascii_case("@hourly"),
        [minute, hour, _, _, _] | [_, minute, hour, ..] => [minute, hour],
        _ => return false,
    };
    time.iter().any(|field| field.starts_with('*'))
}

/// If both days are restricted and one of them begins with a `*`, Vixie cron runs on days that match both, and this
/// crate on days that match either one. Returns the expression that has Vixie's meaning here.
fn both_days(expression: &str) -> Option<String> {
    let mut fields: Vec<_> = expression.split_whitespace().collect();
    let days = match fields.len() {
        5 => [2, 4],
        6.. => [3, 5],
        _ => return None,
    };
    let [of_month, of_week] = days.map(|at| fields[at]);
    let is_all = |field| matches!(field, "*" | "?");
    let begins_with_star = of_month.starts_with('*') || of_week.starts_with('*');
    if is_all(of_month) || is_all(of_week) || of_week.starts_with('+') || !begins_with_star {
        return None;
    }
    let of_week = format!("+{of_week}");
    fields[days[1]] = &of_week;
    Some(fields.join(" "))
}

fn parse(expression: &str) -> Result<croner::Cron, ScheduleProblem> {
    croner::Cron::from_str(expression).map_err(|error| {
        let problem = match error {
            CronError::InvalidPattern(text)
            | CronError::IllegalCharacters(text)
            | CronError::ComponentError(text) => text,
            CronError::EmptyPattern => "it is empty".to_owned(),
            other => other.to_string(),
        };
        // A part of a sentence.
        let mut problem = problem.trim_end_matches('.').to_owned();
        if let Some(first) = problem.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        ScheduleProblem::BadExpression { expression: expression.to_owned(), problem }
    })
}

fn find_zone(name: &str) -> Result<TimeZone, ScheduleProblem> {
    TimeZone::get(name).map_err(|_| ScheduleProblem::UnknownTimeZone { name: name.to_owned() })
}
