//! Strategies: which siblings go down with a failed child, and which ends take the supervisor down.
//!
//! A strategy knows positions, the order in which children start. It knows neither the children
//! nor how many there are.
//!
//! # Invariants
//!
//! 1. [`Strategy::affected`] is the only place that tells the strategies apart.
//! 2. The range always contains the child that failed.

use std::ops::RangeInclusive;

use super::word::words;

/// Which siblings are restarted together with a failed child.
///
/// The strategies are OTP's. The affected children stop in the reverse of their start order, each
/// with its own [`Shutdown`](crate::Shutdown), and start again in start order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Only the child that failed. The default, as in OTP.
    #[default]
    OneForOne,
    /// Every child.
    OneForAll,
    /// The child that failed and those that start after it.
    RestForOne,
}

impl Strategy {
    /// The positions that a failure at position `failed` takes down.
    ///
    /// The range is open-ended on purpose: positions are handed out in start order, with gaps where
    /// children were deleted, so that "the rest" is every position from `failed` up.
    pub(crate) fn affected(self, failed: u64) -> RangeInclusive<u64> {
        match self {
            Self::OneForOne => failed..=failed,
            Self::OneForAll => 0..=u64::MAX,
            Self::RestForOne => failed..=u64::MAX,
        }
    }
}

words!(
    Strategy, "strategy":
    OneForOne = "one_for_one",
    OneForAll = "one_for_all",
    RestForOne = "rest_for_one",
);

/// Whether a supervisor ends when its significant children have.
///
/// The modes are OTP's. What counts is a *significant* child that ends by itself and is not going
/// to be restarted: a transient one after a clean end, a temporary one after any. A child that is
/// terminated by a call, or stopped because its group is restarted, doesn't count. The supervisor
/// then stops the other children in reverse order and ends as
/// [`Normal`](crate::ExitReason::Normal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoShutdown {
    /// The supervisor goes on, also without children. The default, as in OTP.
    #[default]
    Never,
    /// The first significant child that ends takes the supervisor with it.
    AnySignificant,
    /// The supervisor ends with the last of its significant children.
    AllSignificant,
}

words!(
    AutoShutdown, "auto-shutdown":
    Never = "never",
    AnySignificant = "any_significant",
    AllSignificant = "all_significant",
);

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    #[test]
    fn a_failure_takes_down_what_its_strategy_says() {
        let end = u64::MAX;
        let table = [
            (Strategy::OneForOne, 0, 0..=0),
            (Strategy::OneForOne, 7, 7..=7),
            (Strategy::OneForOne, end, end..=end),
            (Strategy::OneForAll, 0, 0..=end),
            (Strategy::OneForAll, 7, 0..=end),
            (Strategy::RestForOne, 0, 0..=end),
            (Strategy::RestForOne, 7, 7..=end),
            (Strategy::RestForOne, end, end..=end),
        ];
        for (strategy, failed, affected) in table {
            assert_eq!(strategy.affected(failed), affected, "{strategy} at {failed}");
        }
    }

    proptest! {
        #[test]
        fn the_failed_child_is_always_affected(failed: u64) {
            for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
                prop_assert!(strategy.affected(failed).contains(&failed), "{}", strategy);
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_otp() {
        assert_eq!(Strategy::default(), Strategy::OneForOne);
        assert_eq!(AutoShutdown::default(), AutoShutdown::Never);
    }
}
