//! The crates, a file for each.

mod ash_flare;
mod hydra;
mod joerl;
mod kameo;
mod ractor;
mod ractor_supervisor;
mod speare;
mod supervised;
mod task_supervisor;
mod taskvisor;
mod tokio_actors;
mod tokio_alone;
mod tokio_graceful_shutdown;
mod verger;

pub use self::ash_flare::AshFlare;
pub use self::hydra::Hydra;
pub use self::joerl::Joerl;
pub use self::kameo::Kameo;
pub use self::ractor::Ractor;
pub use self::ractor_supervisor::RactorSupervisor;
pub use self::speare::Speare;
pub use self::supervised::Supervised;
pub use self::task_supervisor::TaskSupervisor;
pub use self::taskvisor::Taskvisor;
pub use self::tokio_actors::TokioActors;
pub use self::tokio_alone::TokioAlone;
pub use self::tokio_graceful_shutdown::TokioGracefulShutdown;
pub use self::verger::Verger;
