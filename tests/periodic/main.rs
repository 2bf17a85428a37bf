//! Periodic children: when runs begin, what an overrun or a failure leads to, and what the status shows.

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cron")]
mod cron;
#[cfg(feature = "cron")]
mod daylight_saving;
mod diary;
mod every;
mod failures;
#[cfg(all(feature = "cron", feature = "lease", feature = "testing"))]
mod leases;
mod limits;
#[path = "../common/log.rs"]
mod log;
mod overruns;
mod refused;
mod run_time;
mod status;
mod stops;
mod unhealthy;
