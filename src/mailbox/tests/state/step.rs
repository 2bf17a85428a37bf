//! The options of a mailbox, and the steps that change it.

use std::num::NonZeroU32;

use proptest::prelude::*;

use crate::mailbox::options::Overflow;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Send,
    Wait,
    /// A sender that had to wait tries again, or is dropped.
    Retry(prop::sample::Index),
    Leave(prop::sample::Index),
    Recv,
    Deliver,
    /// The inbox of an earlier loan asks for a message.
    RecvStale,
    Ack(prop::sample::Index),
    Drop(prop::sample::Index),
    Lend,
    End,
    Ready,
    CloseInbox,
    Stop {
        for_good: bool,
    },
    Close,
    Reopen,
    MarkIdle,
    Rebind,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Step::Send),
        3 => Just(Step::Wait),
        4 => index().prop_map(Step::Retry),
        1 => index().prop_map(Step::Leave),
        4 => Just(Step::Recv),
        6 => Just(Step::Deliver),
        1 => Just(Step::RecvStale),
        3 => index().prop_map(Step::Ack),
        4 => index().prop_map(Step::Drop),
        4 => Just(Step::Lend),
        3 => Just(Step::End),
        2 => Just(Step::Ready),
        1 => Just(Step::CloseInbox),
        2 => any::<bool>().prop_map(|for_good| Step::Stop { for_good }),
        1 => Just(Step::Close),
        1 => Just(Step::Reopen),
        1 => Just(Step::MarkIdle),
        1 => Just(Step::Rebind),
    ]
}

/// The options of the mailbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
    pub(super) most: Option<NonZeroU32>,
    pub(super) diverts: bool,
    pub(super) waits_for_ready: bool,
    pub(super) overtakes: bool,
    pub(super) start_on_message: bool,
}

pub(super) fn config() -> impl Strategy<Value = Config> {
    let overflow =
        prop_oneof![Just(Overflow::Reject), Just(Overflow::DropOldest), Just(Overflow::DropNewest)];
    let most = (0..4_u32).prop_map(NonZeroU32::new);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (1..5_usize, overflow, most, flags).prop_map(|(capacity, overflow, most, flags)| {
        let (diverts, waits_for_ready, overtakes, start_on_message) = flags;
        Config { capacity, overflow, most, diverts, waits_for_ready, overtakes, start_on_message }
    })
}
