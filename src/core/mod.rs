//! The rules of supervision, without a clock, a task or an `await`.
//!
//! A [`Machine`] holds the rules of one supervisor. It takes in one [`MachineEvent`] at a time,
//! together with the instant at which it happened, and appends the [`Effect`]s that the driver has to
//! apply, in order. It cannot block, cannot fail and never reads the time, so that every rule can be
//! tested as a sequence of calls.
//!
//! | file | what |
//! | --- | --- |
//! | `event`, `user_code` | what goes into a step, and the user's code that it calls |
//! | `effect`, `view` | what comes out, and what can be seen |
//! | `machine` | the entry points, and what both kinds of supervisor share |
//! | `ordered`, `dynamic` | the two kinds: children in an order, many equal children |
//! | `group` | the start order, and the state of an operation over several children in it |
//! | `children`, `child` | what happens to one child, and its state |
//! | `history` | the failures of one child, and its restart limits as far as they are used up |
//! | `conditions` | what only children with a condition need, such as a lease or a watchdog |
//! | `callers`, `requirements`, `timers`, `arena` | tables by child |
//! | `verify` | simulation, invariants and exploration (tests only) |
//!
//! # Invariants
//!
//! 1. A child has at most one live incarnation: between two [`Effect::Start`] of one child lies its
//!    exit, or the report that it leaked.
//! 2. An event of an incarnation that is over changes nothing.
//! 3. Each [`Report`] is a legal edge of [`Lifecycle`](crate::lifecycle::Lifecycle), and begins where
//!    the child's last report ended.
//! 4. Nothing is started after the supervisor has begun to end. [`Effect::Finish`] comes when no child
//!    is live any more, and is the last effect.
//! 5. Every ticket is answered at most once, and no ticket of a removed child is left.
//! 6. One event costs O(log n) for each child that it visits, and visits at most [`SLICE`] children.
//!    If there is more to do, [`Machine::next_deadline`] is due at once.

mod arena;
mod callers;
mod child;
mod children;
mod conditions;
mod dynamic;
mod effect;
mod event;
mod group;
mod history;
mod machine;
mod ordered;
mod requirements;
#[cfg(test)]
mod tests;
mod timers;
mod user_code;
#[cfg(test)]
mod verify;
mod view;

use self::arena::Arena;
pub(crate) use self::arena::{Key, trim};
use self::callers::{Callers, WaitFor};
use self::child::{
    AfterFailing, ChildEntry, ChildState, DownState, Position, RestartDecision, StopReason, Timer,
};
use self::children::Children;
pub(crate) use self::conditions::ANSWER_WITHIN;
use self::conditions::{Conditions, LeaseState, Stall};
use self::dynamic::Dynamic;
use self::effect::StepCx;
pub(crate) use self::effect::{ConditionEffect, Decision, Effect, Ending, Finish, Report};
pub(crate) use self::event::{
    ChildAnswer, ChildRequest, ConditionEvent, Declaration, IncarnationNumber, MachineEvent,
    NO_TICKET, Ticket,
};
use self::event::{IfRunning, IfWaiting};
use self::group::{After, CloseScope, GroupOp, GroupPhase, StartMode, StartOrder, StopMode};
pub(crate) use self::history::ExceededLimit;
use self::history::{FailureHistory, exceeded_window};
pub(crate) use self::machine::Machine;
use self::machine::each;
use self::ordered::Ordered;
use self::requirements::Requirements;
pub(crate) use self::requirements::{Links, RequirementId};
use self::timers::Timers;
pub(crate) use self::user_code::UserCalls;
use self::user_code::UserCode;
use self::view::{ChildCounts, FailureSummary, PastExit};
pub(crate) use self::view::{Operation, View, WaitReason};

/// The version of the rules of supervision: raised whenever a supervisor may decide differently in the same situation.
///
/// Two versions of verger with the same number have the same rules. What else changes is in the changelog.
///
/// ```
/// assert_eq!(verger::RULES, 1);
/// ```
pub const RULES: u32 = 1;

/// How many children one event may visit, so that no event takes long.
pub(crate) const SLICE: usize = 64;
