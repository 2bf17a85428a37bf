//! Deliberate failures.
//!
//! [`schedule`] decides when each kind of failure is due. [`Chaos`] counts stored lines and injects
//! the failures. Both outlive the incarnations, so that each failure happens once.

pub(crate) mod schedule;

use std::iter::Peekable;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tracing::warn;
use verger::{Context, ControlError, Exit, SupervisorHandle};

pub(crate) use schedule::Site;
use schedule::{Kind, Schedule, Strike};

/// Counts stored lines and injects failures when they are due.
#[derive(Debug, Default)]
pub(crate) struct Chaos {
    from_file: AtomicU64,
    from_connections: AtomicU64,
    /// One schedule for each site; empty without chaos.
    schedules: Vec<Mutex<Peekable<Schedule>>>,
    struck: Mutex<Struck>,
}

/// How often each kind of failure was injected.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Struck {
    pub(crate) panics: u64,
    pub(crate) errors: u64,
    pub(crate) hangs: u64,
    pub(crate) aborts: u64,
}

impl Chaos {
    /// Returns a chaos that injects nothing.
    pub(crate) fn off() -> Self {
        Self::default()
    }

    /// Returns a chaos with the failures of `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        let schedule = |site| Mutex::new(Schedule::new(seed, site).peekable());
        Self { schedules: Site::ALL.map(schedule).into(), ..Self::default() }
    }

    /// Counts lines that have just been stored for the first time.
    pub(crate) fn count(&self, from_file: u64, from_connections: u64) {
        self.from_file.fetch_add(from_file, Relaxed);
        self.from_connections.fetch_add(from_connections, Relaxed);
    }

    pub(crate) fn struck(&self) -> Struck {
        *self.struck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails or hangs the calling child, if a failure is due.
    pub(crate) async fn strike(&self, ctx: &Context, site: Site) -> Exit {
        let Some(Strike { after, kind }) = self.due(site) else { return Ok(()) };
        match kind {
            Kind::Panic => panic!("chaos: a panic after {after} lines"),
            Kind::Error => Err(format!("chaos: an error after {after} lines").into()),
            Kind::Hang => std::future::pending().await,
            Kind::Abort => {
                ctx.parent().kill(ctx.path().name()).await?;
                std::future::pending().await
            }
        }
    }

    /// Aborts the supervisor `name` with all its children, if that is due.
    pub(crate) async fn strike_supervisor(
        &self,
        parent: &SupervisorHandle,
        name: &str,
        site: Site,
    ) -> Result<(), ControlError> {
        match self.due(site) {
            Some(_) => parent.kill(name).await.map(drop),
            None => Ok(()),
        }
    }

    /// Takes the site's next failure off its list, if it is due.
    fn due(&self, site: Site) -> Option<Strike> {
        let mut schedule = self.schedules.get(site as usize)?.lock().ok()?;
        let work = self.work(site);
        let strike = schedule.next_if(|strike| strike.after <= work)?;
        let mut struck = self.struck.lock().unwrap_or_else(PoisonError::into_inner);
        *match strike.kind {
            Kind::Panic => &mut struck.panics,
            Kind::Error => &mut struck.errors,
            Kind::Hang => &mut struck.hangs,
            Kind::Abort => &mut struck.aborts,
        } += 1;
        warn!(?site, kind = ?strike.kind, after = strike.after, "chaos strikes");
        Some(strike)
    }

    fn work(&self, site: Site) -> u64 {
        let (file, connections) =
            (self.from_file.load(Relaxed), self.from_connections.load(Relaxed));
        match site {
            Site::Database | Site::Writer => file + connections,
            Site::File => file,
            Site::Connection | Site::Connections => connections,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_happens_once_and_only_when_it_is_due() {
        let first = Schedule::new(1, Site::File).next().unwrap();
        let chaos = Chaos::seeded(1);

        chaos.count(first.after - 1, 0);
        assert_eq!(chaos.due(Site::File), None, "one line too early");
        chaos.count(0, 1_000);
        assert_eq!(chaos.due(Site::File), None, "another source's work");
        chaos.count(1, 0);
        assert_eq!(chaos.due(Site::File), Some(first));
        assert_eq!(chaos.due(Site::File), None, "it has struck");
    }

    #[test]
    fn skipped_failures_happen_one_at_a_time() {
        let chaos = Chaos::seeded(1);
        chaos.count(1_000, 0);

        let due: Vec<Strike> = std::iter::from_fn(|| chaos.due(Site::Writer)).collect();

        assert_eq!(due, Schedule::new(1, Site::Writer).take(3).collect::<Vec<_>>());
        let struck = Struck { panics: 1, errors: 1, hangs: 0, aborts: 1 };
        assert_eq!(chaos.struck(), struck);
    }

    #[test]
    fn without_a_seed_nothing_fails() {
        let chaos = Chaos::off();
        chaos.count(1_000_000, 1_000_000);

        assert!(Site::ALL.into_iter().all(|site| chaos.due(site).is_none()));
    }
}
