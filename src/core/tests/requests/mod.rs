//! What each request leads to in each state.

mod calls;
mod find;
mod groups;
mod table;

use crate::core::verify::simulation::{FakeChild, at_most, fake, rules, secs};
use crate::policy::{Backoff, OnExhausted, Rules, Strategy};

fn waiting() -> Rules {
    Rules { backoff: Backoff::constant(secs(9)), ..rules() }
}

fn parking() -> Rules {
    Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..waiting() }
}

fn group() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..waiting() }
}

/// A child that takes a second for everything.
fn slow() -> FakeChild {
    fake("b").stops(secs(1))
}
