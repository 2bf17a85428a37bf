//! Presets: the settings of a supervisor that behaves as in Erlang/OTP or in Elixir.
//!
//! A [`Preset`] is a bundle of values. How a builder applies it, and what comes before it or after
//! it, isn't known here.

use std::time::Duration;

use crate::policy::{Backoff, FirstStart};

/// A bundle of settings under which a supervisor behaves as it does elsewhere.
///
/// Our own defaults differ from OTP's where a service gains by it. A preset takes these differences
/// back, for a tree that is ported and has to behave as before:
///
/// | | without a preset | [`otp`](Self::otp) | [`elixir`](Self::elixir) |
/// | --- | --- | --- | --- |
/// | restarts, then it gives up | 5 in 60 s | 1 in 5 s | 3 in 5 s |
/// | wait before a restart | 200 ms to 30 s | none | none |
/// | first start of a child fails | retried | fails the start | fails the start |
/// | restart of a child that never became active | free while it has a wait | counts | counts |
/// | it gave up: its end is | a failure | clean | clean |
///
/// The last row means that a *transient* or *temporary* supervisor that gives up isn't restarted by
/// its own supervisor, and nothing fails; only a permanent one passes the trouble on.
#[derive(Clone, Debug)]
pub struct Preset {
    /// How many restarts are granted within `period`.
    pub(crate) max_restarts: u32,
    /// For how long a restart counts.
    pub(crate) period: Duration,
    /// The backoff of children that have none of their own.
    pub(crate) backoff: Backoff,
    /// What happens when a child fails its very first start.
    pub(crate) first_start: FirstStart,
    /// Whether failures before a child is active count although they are delayed.
    pub(crate) charge_everything: bool,
    /// Whether giving up ends the supervisor as `Shutdown`, a clean end, and not as `Escalated`.
    pub(crate) gives_up_cleanly: bool,
}

impl Preset {
    /// As in Erlang/OTP: one restart in 5 s, at once, and giving up is a clean end.
    #[must_use]
    pub const fn otp() -> Self {
        Self::of_the_beam(1)
    }

    /// As in Elixir: three restarts in 5 s, otherwise the same as [`otp`](Self::otp).
    #[must_use]
    pub const fn elixir() -> Self {
        Self::of_the_beam(3)
    }

    const fn of_the_beam(max_restarts: u32) -> Self {
        Self {
            max_restarts,
            period: Duration::from_secs(5),
            backoff: Backoff::none(),
            first_start: FirstStart::Fail,
            charge_everything: true,
            gives_up_cleanly: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_differ_in_how_many_restarts_they_grant_within_five_seconds() {
        for (preset, max_restarts) in [(Preset::otp(), 1), (Preset::elixir(), 3)] {
            assert_eq!(preset.max_restarts, max_restarts);
            assert_eq!(preset.period, Duration::from_secs(5));
            assert_eq!(preset.backoff, Backoff::none());
            assert_eq!(preset.first_start, FirstStart::Fail);
            assert!(preset.charge_everything);
            assert!(preset.gives_up_cleanly);
        }
    }
}
