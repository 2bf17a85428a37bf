//! A mailbox against a naive model: its options, its loan, and where each message is.

mod comparison;
mod model;
mod step;

use proptest::prelude::*;

use comparison::Comparison;
use step::{config, step};

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn a_mailbox_behaves_like_its_naive_model(
        config in config(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut comparison = Comparison::new(config);
        for step in steps {
            comparison.take(step)?;
        }
    }
}
