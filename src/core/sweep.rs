//! The sweep: the one operation that concerns several children in order.
//!
//! First start, group restart, parking and shutdown are the same walk. It stops a range from its
//! end, one child at a time; waits; and starts the range from its beginning. What differs is where
//! it begins and what comes [`Then`].
//!
//! On its way to the beginning it tells each child whether it comes back; on its way to the end it
//! starts those that were told so and those that have never been started. So a child that ends, or
//! is stopped by hand, after it was told, stays down.
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

use std::collections::BTreeMap;
#[cfg(test)]
use std::hash::Hash;
use std::time::Instant;

use super::ordered::Ordered;
use super::state::{Down, Pos, State, Timer, Why};
use super::{Effect, Finish, Key, SLICE, Turn};
#[cfg(test)]
use super::{children::Children, fingerprint::Fingerprint};
use crate::policy::{Shutdown, Start, StartCause};

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Sweep {
    /// The first child that is stopped.
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
    /// All children of the range at `cursor` and behind it are down, and have been told whether
    /// they come back. Those that were added since are not of the range.
    Stopping {
        cursor: Pos,
        manner: Manner,
    },
    Waiting,
    /// All children of the range before `cursor` have passed.
    Starting {
        cursor: Pos,
        mode: Mode,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Manner {
    /// Each is asked when the one behind it is down.
    Ask,
    /// All at once, without waiting for each.
    Abort,
    /// Whoever runs is passed over.
    Spare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mode {
    /// Each when the one before has passed.
    InTurn,
    /// All that can be started; then wait for them.
    AllAtOnce,
    /// Only wait until each has passed.
    Passing,
}

/// What comes when the range is down.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Then {
    /// It is started again.
    Run,
    /// It is left as it is. The others go on.
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
        let phase = Phase::Starting { cursor: 0, mode: Mode::of(start) };
        Self { from: 0, start_from: 0, phase, until: now, culprit: None, then: Then::Run }
    }

    fn is_finishing(&self) -> bool {
        matches!(self.then, Then::Finish(_))
    }

    fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    /// The last child of the range before `to`.
    fn last_before(&self, to: Pos, order: &BTreeMap<Pos, Key>) -> Option<(Pos, Key)> {
        let (&pos, &key) = order.range(..to).next_back()?;
        (pos >= self.from).then_some((pos, key))
    }

    #[cfg(test)]
    pub(super) fn print(&self, children: &Children, print: &mut Fingerprint) {
        print.pos(self.from);
        print.pos(self.start_from);
        print.at(self.until);
        print.key(self.culprit, children);
        std::mem::discriminant(&self.then).hash(print);
        std::mem::discriminant(&self.phase).hash(print);
        match self.phase {
            Phase::Stopping { cursor, manner } => {
                print.pos(cursor);
                manner.hash(print);
            }
            Phase::Waiting => {}
            Phase::Starting { cursor, mode } => {
                print.pos(cursor);
                mode.hash(print);
            }
        }
    }
}

impl Mode {
    fn of(start: Start) -> Self {
        match start {
            Start::Sequential => Self::InTurn,
            Start::Concurrent => Self::AllAtOnce,
        }
    }
}

impl Ordered {
    /// All that there are now. Whoever is added later neither is stopped nor needs to be told.
    fn all(&self, manner: Manner) -> Phase {
        Phase::Stopping { cursor: self.next_pos, manner }
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finished || self.sweep.as_ref().is_some_and(Sweep::is_finishing)
    }

    /// Whether the child is in a range that is being stopped, and has not been passed.
    pub(super) fn is_being_swept(&self, key: Key) -> bool {
        let Some(sweep) = &self.sweep else { return false };
        let Some(slot) = self.children.slots.get(key) else { return false };
        match sweep.phase {
            Phase::Stopping { cursor, manner } => {
                slot.pos >= sweep.from
                    && match manner {
                        Manner::Ask => slot.pos < cursor,
                        // It is passed while it is still there.
                        Manner::Abort => true,
                        Manner::Spare => false,
                    }
            }
            Phase::Waiting | Phase::Starting { .. } => false,
        }
    }

    /// Whether a group operation will come to the child, which is down, and start it.
    pub(super) fn will_be_started(&self, key: Key) -> bool {
        let Some(slot) = self.children.slots.get(key) else { return false };
        let Some(sweep) = &self.sweep else { return false };
        let comes = match sweep.phase {
            Phase::Stopping { cursor, .. } if (sweep.from..cursor).contains(&slot.pos) => {
                return slot.pos >= sweep.start_from
                    && matches!(sweep.then, Then::Run)
                    && !self.is_dismissed(key)
                    && slot.state != State::Down(Down::Leaked)
                    && (!slot.is_startable() || slot.has_mail());
            }
            Phase::Stopping { .. } | Phase::Waiting => slot.pos >= sweep.start_from,
            Phase::Starting { mode: Mode::Passing, .. } => false,
            Phase::Starting { cursor, .. } => slot.pos >= cursor,
        };
        comes && matches!(sweep.then, Then::Run) && slot.waits_for_its_turn()
    }

    /// The child that is to be down before the next one is asked. Not in a range that stays down, or
    /// of which a part does: who is started there meanwhile may have to be stopped first.
    pub(super) fn stops_now(&self) -> Option<Key> {
        let sweep = self.sweep.as_ref().filter(|sweep| match sweep.then {
            Then::Run => sweep.start_from <= sweep.from,
            Then::Rest => false,
            Then::Finish(_) => true,
        })?;
        let Phase::Stopping { cursor, manner: Manner::Ask } = sweep.phase else { return None };
        sweep.last_before(cursor, &self.order).map(|(_, key)| key)
    }

    /// Who is asked after this child, if it is a worker.
    pub(super) fn stops_after(&self, key: Key) -> Option<Key> {
        let pos = self.children.slots.get(key)?.pos;
        let (_, next) = self.sweep.as_ref()?.last_before(pos, &self.order)?;
        let slot = self.children.slots.get(next)?;
        let asked = slot.state == State::Active
            && slot.options.supervisor.is_none()
            && self.children.rules.shutdown(&slot.options) != Shutdown::BrutalKill;
        asked.then_some(next)
    }

    /// Whether the range that is being stopped is started again.
    pub(super) fn group_returns(&self) -> bool {
        self.sweep.as_ref().is_some_and(|sweep| matches!(sweep.then, Then::Run))
    }

    /// Whether it is still open who of a range comes back.
    pub(super) fn is_stopping_a_range(&self) -> bool {
        let stopping = |sweep: &Sweep| matches!(sweep.phase, Phase::Stopping { .. });
        self.sweep.as_ref().is_some_and(stopping)
    }

    /// Ends the supervisor, unless that has begun already.
    pub(super) fn finish(&mut self, finish: Finish) {
        if self.is_finishing() {
            return;
        }
        self.replace(0, self.all(Manner::Ask), Then::Finish(finish));
    }

    /// Stops a range and leaves it stopped.
    pub(super) fn rest(&mut self, from: Pos, turn: &mut Turn<'_>) {
        let from = match &self.sweep {
            Some(sweep) if !sweep.is_starting() => sweep.from.min(from),
            _ => from,
        };
        let awaited = self.awaited();
        self.replace(from, self.all(Manner::Ask), Then::Rest);
        self.await_no_longer(awaited, turn);
    }

    /// Starts what is down from `from` on, without stopping anything.
    pub(super) fn start_from(&mut self, from: Pos) {
        self.replace(from, self.all(Manner::Spare), Then::Run);
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
        let awaited = self.awaited();
        let all = self.all(Manner::Ask);
        match &mut self.sweep {
            Some(sweep) if sweep.is_finishing() => return,
            Some(sweep) if matches!(sweep.then, Then::Run) && !sweep.is_starting() => {
                // From the end again, unless those that come back are the same and on their way.
                let asks = matches!(sweep.phase, Phase::Stopping { manner: Manner::Ask, .. });
                if !asks || from < sweep.from.max(sweep.start_from) {
                    sweep.phase = all;
                }
                sweep.from = sweep.from.min(from);
                sweep.start_from = sweep.start_from.min(from);
                sweep.until = sweep.until.max(until);
                sweep.culprit = culprit.or(sweep.culprit);
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
                let (from, phase, then) = (stop_from, all, Then::Run);
                *sweep = Some(Sweep { from, start_from, phase, until, culprit, then });
            }
        }
        self.children.timers.disarm(Timer::Sweep);
        self.await_no_longer(awaited, turn);
    }

    /// The child that is waited for.
    fn awaited(&self) -> Option<Key> {
        self.sweep.as_ref().and_then(|sweep| sweep.culprit)
    }

    /// A group waits for one child. Who was awaited before is down like the rest, and not only in its
    /// turn: there is nothing to end, and its own restart will not come.
    fn await_no_longer(&mut self, before: Option<Key>, turn: &mut Turn<'_>) {
        let (Some(key), Some(sweep)) = (before, &self.sweep) else { return };
        let Some(slot) = self.children.slots.get(key) else { return };
        let waits = slot.state == State::Awaiting && slot.pos >= sweep.from;
        if waits && sweep.culprit != before {
            self.absorb(key, turn);
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
        let all = self.all(Manner::Ask);
        let Some(sweep) = &mut self.sweep else { return };
        if sweep.culprit == Some(culprit) && !sweep.is_finishing() && !sweep.is_starting() {
            sweep.culprit = None;
            sweep.then = Then::Rest;
            // From the end again, to tell the others.
            sweep.phase = all;
            self.children.timers.disarm(Timer::Sweep);
        }
    }

    /// Whatever is left of a finishing supervisor is aborted.
    pub(super) fn abort_all(&mut self) {
        let all = self.all(Manner::Abort);
        if let Some(sweep) = &mut self.sweep {
            sweep.phase = all;
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
            Phase::Stopping { cursor, manner } => match sweep.last_before(cursor, &self.order) {
                Some((pos, key)) => self.stop_next(pos, key, manner, turn),
                None if manner == Manner::Abort && self.children.live > 0 => Step::Wait,
                None => self.all_down(turn),
            },
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
                    self.dismissed.clear();
                    self.come_up(turn);
                    Step::Wait
                }
            },
        }
    }

    fn stop_next(&mut self, pos: Pos, key: Key, manner: Manner, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &self.sweep else { return Step::Wait };
        let returns =
            matches!(sweep.then, Then::Run) && pos >= sweep.start_from && !self.is_dismissed(key);
        let awaited = returns && sweep.culprit == Some(key);
        let state = self.children.slot(key).state;
        match (state, manner) {
            (State::Down(down), _) => self.tell(key, down, returns, turn),
            (State::Awaiting, _) if awaited => {}
            (_, Manner::Spare) => {}
            (State::Gated(_) | State::Backoff | State::Awaiting | State::Asking { .. }, _) => {
                self.absorb(key, turn);
                return Step::Again;
            }
            (State::Active | State::Activating | State::Stopping { .. }, Manner::Abort) => {
                self.children.abort(key, turn);
            }
            (State::Active | State::Activating, Manner::Ask) => {
                self.children.begin_stop(key, Why::Group, turn);
                if let Some(sweep) = &mut self.sweep {
                    // There is nobody between.
                    sweep.phase = Phase::Stopping { cursor: pos + 1, manner };
                }
                return Step::Wait;
            }
            (State::Stopping { .. }, Manner::Ask) => return Step::Wait,
        }
        if let Some(sweep) = &mut self.sweep {
            sweep.phase = Phase::Stopping { cursor: pos, manner };
        }
        // It need not wait for those that do not come back either.
        self.open_mail(key, turn);
        Step::Again
    }

    /// Tells a child that is down whether it comes back: all do, however they came to be down,
    /// except those that must not run twice, and those that a message starts.
    fn tell(&mut self, key: Key, down: Down, returns: bool, turn: &mut Turn<'_>) {
        let told = match down {
            Down::New if returns => Down::New,
            Down::Leaked => Down::Leaked,
            _ if self.children.slot(key).is_startable() => down,
            _ if returns => Down::ByGroup,
            Down::New | Down::ByGroup => Down::Rested,
            stays => stays,
        };
        if told != down || self.is_finishing() {
            self.children.enter_stopped(key, turn);
        }
        if told != down {
            self.lay_down(key, told, turn);
        }
        if (down, told) == (Down::ByGroup, Down::Rested) && !self.is_finishing() {
            turn.push(Effect::StaysDown { key });
        }
        self.turn_away(key, turn);
    }

    /// A child that was about to be started is down, like the rest of its group.
    pub(super) fn absorb(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        self.children.enter_stopped(key, turn);
        if let Some(ledger) = &mut self.children.slot(key).ledger {
            ledger.next = None;
        }
        self.lay_down(key, Down::ByGroup, turn);
    }

    fn all_down(&mut self, turn: &mut Turn<'_>) -> Step {
        if std::mem::take(&mut self.recount) && !self.is_finishing() && self.all_have_ended() {
            self.finish(Finish::AutoShutdown);
            return Step::Again;
        }
        let Some(sweep) = &mut self.sweep else { return Step::Wait };
        match &sweep.then {
            Then::Run => {
                sweep.phase = Phase::Waiting;
                Step::Again
            }
            Then::Rest => {
                *sweep = Sweep::first_start(self.children.rules.start, turn.now);
                Step::Again
            }
            Then::Finish(_) => {
                if let Some(Sweep { then: Then::Finish(finish), .. }) = self.sweep.take() {
                    turn.push(Effect::Finish(finish));
                }
                self.finished = true;
                Step::Wait
            }
        }
    }

    fn start_next(&mut self, pos: Pos, key: Key, mode: Mode, turn: &mut Turn<'_>) -> Step {
        let Some(sweep) = &mut self.sweep else { return Step::Wait };
        let waits = self.children.slot(key).waits_for_its_turn();
        let (next, launch) = match mode {
            Mode::InTurn if waits => (sweep.phase, true),
            Mode::AllAtOnce => (Phase::Starting { cursor: pos + 1, mode }, waits),
            Mode::InTurn | Mode::Passing => {
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
            // Most are active at once, and need not be looked for again.
            if let Some(sweep) = self.sweep.as_mut().filter(|_| mode == Mode::InTurn)
                && self.children.state(key) == Some(State::Active)
            {
                sweep.phase = Phase::Starting { cursor: pos + 1, mode };
            }
        }
        Step::Again
    }

    /// Why the sweep starts a child.
    fn cause(&mut self, key: Key) -> StartCause {
        let (up, wanted) = (self.up, self.children.callers.want_up(key));
        let slot = self.children.slot(key);
        match (slot.state, wanted) {
            (State::Awaiting, _) => StartCause::Restart,
            (_, true) => StartCause::Manual,
            _ if slot.is_startable() => StartCause::OnMessage,
            _ if slot.incarnation == 0 && !up => StartCause::Initial,
            _ => StartCause::Group,
        }
    }

    /// Whether the child after this one may have its turn.
    fn has_passed(&self, key: Key) -> bool {
        match self.children.state(key) {
            None | Some(State::Active | State::Down(_)) => true,
            Some(State::Gated(_)) => self.children.waits_in_vain(key),
            Some(
                State::Activating
                | State::Backoff
                | State::Awaiting
                | State::Asking { .. }
                | State::Stopping { .. },
            ) => false,
        }
    }

    fn come_up(&mut self, turn: &mut Turn<'_>) {
        if !self.up {
            self.up = true;
            turn.push(Effect::Up);
        }
    }
}
