//! Schedules that are refused when the tree is built.

use std::time::Duration;

use verger::periodic::{Overrun, RunContext};
use verger::{ChildSpec, Supervisor, every};

use crate::diary::secs;

fn refused(child: impl Into<ChildSpec>) -> String {
    Supervisor::builder("app").child(child.into()).build().unwrap_err().to_string()
}

async fn idle(_: RunContext) {}

#[test]
fn a_period_of_zero_and_other_values_that_cannot_work() {
    let job = || every("a", secs(10), idle);
    for (job, problem) in [
        (
            every("a", Duration::ZERO, idle),
            "the period of `app/a` is zero; write a duration such as `10s`",
        ),
        (
            job().limit_run(Duration::ZERO),
            "the `limit_run` of `app/a` is zero; write a duration such as `60s`",
        ),
        (
            job().unhealthy_after(0),
            "the schedule of `app/a` cannot work: `unhealthy_after(0)` waits for no failed run; write \
             `unhealthy_after(1)` or more",
        ),
        (
            job().fail_after(0),
            "the schedule of `app/a` cannot work: `fail_after(0)` waits for no failed run; write `fail_after(1)` or \
             more",
        ),
        (
            job().jitter(secs(10)),
            "the schedule of `app/a` cannot work: a jitter of 10s isn't shorter than the period of 10s; write a \
             shorter one, such as `1s`",
        ),
        (
            job().overrun(Overrun::Allow(0)),
            "the schedule of `app/a` cannot work: `Overrun::Allow(0)` allows no run; write `Overrun::Allow(2)` or \
             more, or `Overrun::Skip`",
        ),
    ] {
        assert_eq!(refused(job), problem);
    }
    let zero = job().spec().run_time_limit(Duration::ZERO);
    assert_eq!(
        refused(zero),
        "the run-time limit of `app/a` is zero; write a duration such as `300s`"
    );
}

#[cfg(feature = "cron")]
#[test]
fn expressions_and_time_zones_that_do_not_exist() {
    use verger::cron;

    let job = |expression: &str| cron("a", expression, idle);
    for (job, problem) in [
        (
            job("61 * * * *"),
            "`61 * * * *` isn't a cron expression: number out of bounds; write five fields (minute, hour, day of the month, month, day of the week) such as \
             `30 4 * * *`, or six with the second first",
        ),
        (
            job("every day"),
            "`every day` isn't a cron expression: pattern must have between 5 and 7 fields; write \
             five fields (minute, hour, day of the month, month, day of the week) such as `30 4 * * *`, or six with \
             the second first",
        ),
        (
            job("0 4 30 2 *"),
            "`0 4 30 2 *` matches no time in the future; check its day and month, and write an expression such as \
             `30 4 * * *`",
        ),
        (
            job("0 4 * * *").in_tz("Europe/Belin"),
            "the system knows no time zone `Europe/Belin`; write a name of the IANA database such as \
             `Europe/Berlin`, and install that database if it is missing (often a package `tzdata`), or use the \
             crate jiff with its feature `tzdb-bundle-always`",
        ),
    ] {
        assert_eq!(refused(job), format!("the schedule of `app/a` cannot work: {problem}"));
    }
}

fn warnings(child: impl Into<ChildSpec>) -> Vec<String> {
    let tree = Supervisor::builder("app").child(child.into()).build().unwrap();
    tree.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn a_period_below_the_resolution_of_timers_is_a_warning() {
    let nanosecond = every("a", Duration::from_nanos(1), idle);
    let expected = "`app/a` runs every 1ns, which is below the resolution of timers: its runs follow each other \
                    without a pause and keep a processor busy; write a period of `1ms` or more";
    assert_eq!(warnings(nanosecond), [expected]);
    assert_eq!(warnings(every("a", Duration::from_nanos(1), idle).fixed_delay()), [expected]);
    assert_eq!(warnings(every("a", Duration::from_millis(1), idle)), [""; 0]);
}

#[cfg(feature = "cron")]
#[test]
fn days_that_mean_something_else_in_vixie_cron_are_a_warning() {
    use verger::cron;

    let of = |expression: &str| warnings(cron("a", expression, idle));
    let expected = "`app/a` has the cron expression `0 9 */2 * 1`, which matches days that match the day of the \
                    month or the day of the week; Vixie cron needs both here, which is `0 9 */2 * +1`; write the \
                    days without a `*`, as in `1-31/2`, if you mean either one";
    assert_eq!(of("0 9 */2 * 1"), [expected]);
    assert_eq!(of("0 0 9 13 * */5").len(), 1, "with seconds");
    for same in
        ["0 9 1-31/2 * 1", "0 9 */2 * +1", "0 9 */2 * *", "0 9 * * 1", "0 9 13 * 5", "@daily"]
    {
        assert_eq!(of(same), [""; 0], "{same}");
    }
}
