//! The options of a mailbox, and the steps that change it.

use std::num::NonZeroU32;

use proptest::prelude::*;

use crate::mailbox::options::Overflow;

#[derive(Clone, Copy, Debug)]
pub(super) enum MailboxStep {
    Send,
    Wait,
    /// A sender that had to wait polls again.
    Retry(prop::sample::Index),
    Leave(prop::sample::Index),
    Recv,
    Deliver,
    /// The inbox also awaits its cancellation.
    StopOrRecv,
    StopOrDeliver,
    /// The inbox of an earlier loan receives.
    RecvStale,
    Ack(prop::sample::Index),
    Drop(prop::sample::Index),
    Lend,
    End,
    /// The incarnation has failed, or one of another number has.
    Fail {
        current: bool,
    },
    Ready,
    CloseInbox,
    Stop {
        for_good: bool,
    },
    ForceClose,
    Close,
    Reopen,
    MarkIdle,
    Rebind,
}

pub(super) fn step() -> impl Strategy<Value = MailboxStep> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(MailboxStep::Send),
        3 => Just(MailboxStep::Wait),
        4 => index().prop_map(MailboxStep::Retry),
        1 => index().prop_map(MailboxStep::Leave),
        4 => Just(MailboxStep::Recv),
        6 => Just(MailboxStep::Deliver),
        2 => Just(MailboxStep::StopOrRecv),
        2 => Just(MailboxStep::StopOrDeliver),
        1 => Just(MailboxStep::RecvStale),
        3 => index().prop_map(MailboxStep::Ack),
        4 => index().prop_map(MailboxStep::Drop),
        4 => Just(MailboxStep::Lend),
        3 => Just(MailboxStep::End),
        3 => any::<bool>().prop_map(|current| MailboxStep::Fail { current }),
        2 => Just(MailboxStep::Ready),
        1 => Just(MailboxStep::CloseInbox),
        2 => any::<bool>().prop_map(|for_good| MailboxStep::Stop { for_good }),
        1 => Just(MailboxStep::ForceClose),
        1 => Just(MailboxStep::Close),
        2 => Just(MailboxStep::Reopen),
        1 => Just(MailboxStep::MarkIdle),
        1 => Just(MailboxStep::Rebind),
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
    pub(super) manual: bool,
}

pub(super) fn config() -> impl Strategy<Value = Config> {
    let overflow =
        prop_oneof![Just(Overflow::Reject), Just(Overflow::DropOldest), Just(Overflow::DropNewest)];
    let most = (0..4_u32).prop_map(NonZeroU32::new);
    let flags = any::<[bool; 5]>();
    (1..5_usize, overflow, most, flags).prop_map(|(capacity, overflow, most, flags)| {
        let [diverts, waits_for_ready, overtakes, start_on_message, manual] = flags;
        Config {
            capacity,
            overflow,
            most,
            diverts,
            waits_for_ready,
            overtakes,
            start_on_message,
            manual,
        }
    })
}
