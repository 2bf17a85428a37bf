//! The sweep: the one operation that concerns several children in order.
//!
//! First start, group restart, parking and shutdown are the same walk. It stops a range from its
//! end, one child at a time; waits; and starts the range from its beginning. What differs is where
//! it begins and what comes [`Then`].
//!
//! There is at most one sweep. A failure that hits one merges with it:
//!
//! * a sweep that finishes the supervisor wins over everything;
//! * one that is stopping or waiting takes the smaller beginning and the later deadline;
//! * one that is starting begins again, at the range of the child that failed.
//!
//! A sweep moves on when it [settles](Ordered::settle), after each event, and visits at most
//! [`SLICE`] children then. The cursor never goes back within a phase, so a whole sweep costs
//! O(log n) for each child of its range.

use std::time::Instant;

use super::children::{Down, Pos, Slot, State, Timer, Why};
use super::ledger::Want;
use super::ordered::Ordered;
use super::{Effect, Finish, Key, SLICE, Turn};
use crate::policy::{Start, StartCause};

#[derive(Debug)]
pub(super) struct Sweep {
    /// The first child that is stopped. From here on, children that had finished, were stopped by
    /// hand or given up come back too.
    from: Pos,
    /// The first child that is looked at when starting. It lies before `from` while others are
    /// still on their way, and behind it if only a part of what is stopped comes back.
    start_from: Pos,
    phase: Phase,
    /// Not started again before this instant.
    pub(super) until: Instant,
    /// The child whose failure is waited out.
    culprit: Option<Key>,
    then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All children at `cursor` and behind it are down.
    Stopping {
        cursor: Pos,
        abort: bool,
    },
    Waiting,
    /// All children of the range before `cursor` have passed.
    Starting {
        cursor: Pos,
        mode: Mode,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Each when the one before has passed. The one that had its turn last has it once.
    InTurn { last: Option<Key> },
    /// All that can be started; then wait for them.
    AllAtOnce,
    /// Only wait until each has passed.
    Passing,
}

/// What comes when the range is down.
#[derive(Clone, Debug)]
enum Then {
    /// It is started again.
    Run,
    /// It is left as it is.
    Rest,
    /// The supervisor ends.
    Finish(Finish),
}

/// Whether there is anything to do before the next event.
#[derive(PartialEq, Eq)]
enum Step {
    Again,
    Wait,
}

impl Sweep {
    pub(super) fn first_start(start: Start, now: Instant) -> Self {
        let mut sweep = Self {
            from: 0,
            start_from: 0,
            phase: Phase::Waiting,
            until: now,
            culprit: None,
            then: Then::Run,
        };
        sweep.begin_first_start(start);
        sweep
    }

    /// Starts what has never been started, and nothing else.
    fn begin_first_start(&mut self, start: Start) {
        self.from = Pos::MAX;
        self.start_from = 0;
        self.then = Then::Run;
        self.phase = Phase::Starting { cursor: 0, mode: Mode::of(start) };
    }

    fn is_finishing(&self) -> bool {
        matches!(self.then, Then::Finish(_))
    }

    fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    /// Whether a child without a task is started when its turn comes.
    fn starts(&self, slot: &Slot) -> bool {
        match slot.state {
            State::Down(Down::New) | State::Awaiting => true,
            State::Down(Down::Leaked) => false,
            State::Down(_) => slot.pos >= self.from,
            _ => false,
        }
    }
}

impl Mode {
    fn of(start: Start) -> Self {
        match start {
            Start::Sequential => Self::InTurn { last: None },
            Start::Concurrent => Self::AllAtOnce,
        }
    }
}

const ALL: Phase = Phase::Stopping { cursor: Pos::MAX, abort: false };

impl Ordered {
    pub(super) fn is_finishing(&self) -> bool {
        self.finished || self.sweep.as_ref().is_some_and(Sweep::is_finishing)
    }

    /// Whether the child is in a range that is being stopped, and has not been passed.
    pub(super) fn is_being_swept(&self, key: Key) -> bool {
        let Some(slot) = self.children.slots.get(key) else { return false };
        self.sweep.as_ref().is_some_and(|sweep| match sweep.phase {
            // One that is aborted is passed while it is still there.
            Phase::Stopping { cursor, abort } => {
                slot.pos >= sweep.from && (abort || slot.pos < cursor)
            }
            Phase::Waiting | Phase::Starting { .. } => false,
        })
    }

    /// Whether a group operation will come to the child, which is down, and start it.
    pub(super) fn will_be_started(&self, key: Key) -> bool {
        let Some(slot) = self.children.slots.get(key) else { return false };
        let Some(sweep) = &self.sweep else { return false };
        let comes = match sweep.phase {
            Phase::Stopping { .. } | Phase::Waiting => slot.pos >= sweep.start_from,
            Phase::Starting { mode: Mode::Passing, .. } => false,
            Phase::Starting { mode: Mode::InTurn { last }, .. } if last == Some(key) => false,
            Phase::Starting { cursor, .. } => slot.pos >= cursor,
        };
        comes && matches!(sweep.then, Then::Run) && sweep.starts(slot)
    }

    /// Ends the supervisor, unless that has begun already.
    pub(super) fn finish(&mut self, finish: Finish) {
        if self.is_finishing() {
            return;
        }
        self.replace(0, ALL, Then::Finish(finish));
    }

    /// Stops a range and leaves it stopped.
    pub(super) fn rest(&mut self, from: Pos) {
        let from = match &self.sweep {
            Some(sweep) if !sweep.is_starting() => sweep.from.min(from),
            _ => from,
        };
        self.replace(from, ALL, Then::Rest);
    }

    /// Starts what is down from `from` on, without stopping anything.
    pub(super) fn start_from(&mut self, from: Pos, now: Instant) {
        let phase = Phase::Starting { cursor: from, mode: Mode::of(self.children.rules.start) };
        self.replace(from, phase, Then::Run);
        if let Some(sweep) = &mut self.sweep {
            sweep.until = now;
        }
    }

    fn replace(&mut self, from: Pos, phase: Phase, then: Then) {
        self.children.timers.disarm(Timer::Sweep);
        let until = self.sweep.take().map_or(self.children.began, |sweep| sweep.until);
        self.sweep = Some(Sweep { from, start_from: from, phase, until, culprit: None, then });
    }

    /// Stops the range that begins at `from` and starts it again at `until`, merging with the
    /// sweep that there is.
    pub(super) fn regroup(
        &mut self,
        from: Pos,
        until: Instant,
        culprit: Option<Key>,
        turn: &mut Turn<'_>,
    ) {
        let old = match &mut self.sweep {
            Some(sweep) if sweep.is_finishing() => return,
            Some(sweep) if matches!(sweep.then, Then::Run) && !sweep.is_starting() => {
                sweep.from = sweep.from.min(from);
                sweep.start_from = sweep.start_from.min(from);
                sweep.until = sweep.until.max(until);
                if sweep.phase == Phase::Waiting {
                    sweep.phase = ALL;
                }
                let old = sweep.culprit;
                sweep.culprit = culprit.or(old);
                old.filter(|_| culprit.is_some())
            }
            sweep => {
                let (mut stop_from, mut start_from) = (from, from);
                match sweep {
                    Some(sweep) if sweep.is_starting() => start_from = sweep.start_from.min(from),
                    Some(sweep) => stop_from = sweep.from.min(from),
                    None => {}
                }
                if !self.up {
                    start_from = 0;
                }
                let (from, phase, then) = (stop_from, ALL, Then::Run);
                *sweep = Some(Sweep { from, start_from, phase, until, culprit, then });
                None
            }
        };
        self.children.timers.disarm(Timer::Sweep);
        if let Some(old) = old
            && self.children.state(old) == Some(State::Awaiting)
        {
            self.absorb(old, turn);
        }
    }

    /// The group waits no longer than now.
    pub(super) fn hurry(&mut self, now: Instant) {
        if let Some(sweep) = &mut self.sweep {
            sweep.until = now;
        }
    }

    /// The child that the group waits for will not come: the rest stays down.
    pub(super) fn abandon(&mut self, culprit: Key) {
        let Some(sweep) = &mut self.sweep else { return };
        if sweep.culprit == Some(culprit) && !sweep.is_finishing() && !sweep.is_starting() {
            sweep.culprit = None;
            sweep.then = Then::Rest;
            // From the end again, to turn away whoever waits for a child of the group.
            sweep.phase = ALL;
            self.children.timers.disarm(Timer::Sweep);
        }
    }

    /// Whatever is left of a finishing supervisor is aborted.
    pub(super) fn abort_all(&mut self) {
        if let Some(sweep) = &mut self.sweep {
            sweep.phase = Phase::Stopping { cursor: Pos::MAX, abort: true };
        }
    }

    /// Goes on with what the last event has made possible.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        self.more = None;
        for _ in 0..SLICE {
            let step = match self.children.requirements.released() {
                Some(key) => self.release(key, turn),
                None => self.step(turn),
            };
            if step == Step::Wait {
                return;
            }
        }
        self.more = Some(turn.now);
    }

    /// Starts a gated child whose requirement has come, unless it is to be stopped.
    fn release(&mut self, key: Key, turn: &mut Turn<'_>) -> Step {
        if let Some(State::Gated(cause)) = self.children.state(key)
            && !self.is_being_swept(key)
        {
            self.children.launch(key, cause, turn);
        }
        Step::Again
    }

    fn step(&mut self, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &mut self.sweep else { return Step::Wait };
        match sweep.phase {
            Phase::Stopping { cursor, abort } => {
                let from = sweep.from.min(cursor);
                match self.order.range(from..cursor).next_back() {
                    Some((&pos, &key)) => self.stop_next(pos, key, abort, turn),
                    None if abort && self.children.live > 0 => Step::Wait,
                    None => self.all_down(turn),
                }
            }
            Phase::Waiting if sweep.until <= turn.now => {
                let mode = Mode::of(self.children.rules.start);
                sweep.phase = Phase::Starting { cursor: sweep.start_from, mode };
                self.children.timers.disarm(Timer::Sweep);
                Step::Again
            }
            Phase::Waiting => {
                self.children.timers.arm(Timer::Sweep, sweep.until);
                Step::Wait
            }
            Phase::Starting { cursor, mode } => match self.order.range(cursor..).next() {
                Some((&pos, &key)) => self.start_next(pos, key, mode, turn),
                None if mode == Mode::AllAtOnce => {
                    let cursor = sweep.start_from;
                    sweep.phase = Phase::Starting { cursor, mode: Mode::Passing };
                    Step::Again
                }
                None => {
                    self.sweep = None;
                    self.come_up(turn);
                    Step::Wait
                }
            },
        }
    }

    fn stop_next(&mut self, pos: Pos, key: Key, abort: bool, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &self.sweep else { return Step::Wait };
        let finishing = sweep.is_finishing();
        let resting = matches!(sweep.then, Then::Rest);
        let awaited = sweep.culprit == Some(key) && matches!(sweep.then, Then::Run);
        match self.children.slot(key).state {
            State::Down(Down::New) if resting => self.absorb(key, turn),
            State::Down(_) => {
                if finishing {
                    self.children.enter_stopped(key, turn);
                }
                self.turn_away(key, turn);
            }
            State::Awaiting if awaited => {}
            State::Gated(_) | State::Backoff | State::Awaiting => self.absorb(key, turn),
            State::Active | State::Activating | State::Stopping { .. } if abort => {
                self.children.abort(key, turn);
            }
            State::Active | State::Activating => {
                self.children.begin_stop(key, Why::Group, turn);
                return Step::Wait;
            }
            State::Stopping { .. } => return Step::Wait,
        }
        if let Some(sweep) = &mut self.sweep {
            sweep.phase = Phase::Stopping { cursor: pos, abort };
        }
        Step::Again
    }

    /// A child that was about to be started is down, like the rest of its group.
    fn absorb(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        self.children.enter_stopped(key, turn);
        if let Some(ledger) = &mut self.children.slot(key).ledger {
            ledger.next = None;
        }
        self.lay_down(key, Down::ByGroup, turn);
    }

    fn all_down(&mut self, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &mut self.sweep else { return Step::Wait };
        match &sweep.then {
            Then::Run => {
                sweep.phase = Phase::Waiting;
                Step::Again
            }
            Then::Rest if self.up => {
                self.sweep = None;
                Step::Wait
            }
            // The first start goes on with the others.
            Then::Rest => {
                sweep.begin_first_start(self.children.rules.start);
                Step::Again
            }
            Then::Finish(finish) => {
                turn.push(Effect::Finish(finish.clone()));
                self.finished = true;
                self.sweep = None;
                Step::Wait
            }
        }
    }

    fn start_next(&mut self, pos: Pos, key: Key, mode: Mode, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &mut self.sweep else { return Step::Wait };
        let startable = sweep.starts(self.children.slot(key));
        let (next, launch) = match mode {
            Mode::InTurn { last } if startable && last != Some(key) => {
                (Phase::Starting { cursor: pos, mode: Mode::InTurn { last: Some(key) } }, true)
            }
            Mode::AllAtOnce => (Phase::Starting { cursor: pos + 1, mode }, startable),
            Mode::InTurn { .. } | Mode::Passing => {
                if !self.has_passed(key) {
                    return Step::Wait;
                }
                (Phase::Starting { cursor: pos + 1, mode }, false)
            }
        };
        if let Some(sweep) = &mut self.sweep {
            sweep.phase = next;
        }
        if launch {
            let cause = self.cause(key);
            self.children.launch(key, cause, turn);
        }
        Step::Again
    }

    /// Why the sweep starts a child.
    fn cause(&mut self, key: Key) -> StartCause {
        let up = self.up;
        let slot = self.children.slot(key);
        match (slot.state, slot.awaited_start()) {
            (State::Awaiting, _) => StartCause::Restart,
            (_, Some(Want::Started)) => StartCause::Manual,
            _ if slot.incarnation == 0 && !up => StartCause::Initial,
            _ => StartCause::Group,
        }
    }

    /// Whether the child after this one may have its turn.
    fn has_passed(&self, key: Key) -> bool {
        match self.children.state(key) {
            None | Some(State::Active | State::Down(_)) => true,
            Some(State::Gated(_)) => self.children.waits_in_vain(key),
            Some(State::Activating | State::Backoff | State::Awaiting | State::Stopping { .. }) => {
                false
            }
        }
    }

    fn come_up(&mut self, turn: &mut Turn<'_>) {
        if !self.up {
            self.up = true;
            turn.push(Effect::Up);
        }
    }
}
