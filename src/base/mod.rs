//! Helpers that know nothing of supervision: clocks, the lock, tasks with names, texts, typed properties, and drops that
//! wait.

pub(crate) mod clock;
pub(crate) mod deferred_drop;
pub(crate) mod human_duration;
pub(crate) mod invisible;
pub(crate) mod named_task;
pub(crate) mod properties;
#[cfg(test)]
pub(crate) mod random_cases;
pub(crate) mod start_of;
pub(crate) mod string_enum;
pub(crate) mod suggest;
pub(crate) mod sync;
