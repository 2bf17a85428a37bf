//! Strategies and auto-shutdown: which siblings a failure affects, and which exits end the
//! supervisor.
//!
//! A strategy maps a position in the start order to a range of positions, whatever children there are.
//!
//! # Invariants
//!
//! 1. Only [`Strategy::affected`] distinguishes the strategies.
//! 2. The range always contains the failed child.

use std::ops::RangeInclusive;

use crate::string_enum::string_enum;

/// Which siblings are restarted together with a failed child.
///
/// The strategies are OTP's. The affected children stop in the reverse of their start order, each
/// with its own [`Shutdown`](crate::Shutdown), and then start again in start order.
///
/// ```
/// use verger::{Context, Strategy, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app")
///     .strategy(Strategy::RestForOne)
///     .child(worker("db", idle))
///     .child(worker("cache", idle))
///     .child(worker("http", idle))
///     .build()?
///     .start()
///     .await?;
///
/// app.restart("cache").await?;
///
/// assert_eq!(app.child("db").await?.incarnation(), Some(1));
/// assert_eq!(app.child("http").await?.incarnation(), Some(2));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Only the failed child. The default, as in OTP.
    #[default]
    OneForOne,
    /// Every child.
    OneForAll,
    /// The failed child and those that start after it.
    RestForOne,
}

impl Strategy {
    /// Returns the positions that a failure at position `failed` affects.
    ///
    /// The range has no upper end, because positions have gaps where children were deleted.
    pub(crate) fn affected(self, failed: u64) -> RangeInclusive<u64> {
        match self {
            Self::OneForOne => failed..=failed,
            Self::OneForAll => 0..=u64::MAX,
            Self::RestForOne => failed..=u64::MAX,
        }
    }
}

string_enum!(
    Strategy, "strategy":
    OneForOne = "one_for_one",
    OneForAll = "one_for_all",
    RestForOne = "rest_for_one",
);

/// Whether a supervisor ends when its significant children have ended.
///
/// The modes are OTP's. A *significant* child counts if it exits by itself and isn't restarted: a
/// transient child after a clean exit, a temporary child after any exit. A child that is stopped by a
/// call or with its group doesn't count.
///
/// A supervisor that shuts down in this way stops its other children in reverse order, and ends as
/// [`Normal`](crate::ExitReason::Normal).
///
/// ```
/// use verger::policy::AutoShutdown;
/// use verger::{Context, RestartType, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let import = worker("import", async |_: Context| ()).restart(RestartType::Temporary).significant();
/// let progress = worker("progress", async |ctx: Context| ctx.cancelled().await);
///
/// // Ends once the import is done.
/// Supervisor::builder("app")
///     .auto_shutdown(AutoShutdown::AnySignificant)
///     .child(progress)
///     .child(import)
///     .build()?
///     .run()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoShutdown {
    /// Never. The supervisor keeps running, even without children. The default, as in OTP.
    #[default]
    Never,
    /// When the first significant child ends.
    AnySignificant,
    /// When the last significant child ends.
    AllSignificant,
}

string_enum!(
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
    fn the_affected_range_of_each_strategy() {
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
        #![proptest_config(crate::random_cases::cases(64))]

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
