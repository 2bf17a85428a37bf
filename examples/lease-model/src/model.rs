//! What may happen, and what must.

use stateright::{Model, Property};

use crate::process::{Message, Phase, Process};
use crate::row::{Id, Mutant, Row, Tick};

/// How often each thing may happen. All are bounded, so that the number of states is.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub processes: Id,
    pub ticks: Tick,
    /// How many messages may be under way at the same time.
    pub messages: usize,
    pub crashes: u8,
    pub stopped_clocks: u8,
    pub releases: u8,
    pub losses: u8,
    pub copies: u8,
    pub writes: u8,
    /// Messages arrive within their tick, and a process asks in each tick. Otherwise a message may be late by any time, and
    /// nothing is certain to happen.
    pub is_prompt: bool,
}

impl Bounds {
    /// Messages that are late by any time, and clocks that stop: for what must never happen.
    pub const LATE: Self = Self {
        processes: 2,
        ticks: 5,
        messages: 2,
        crashes: 0,
        stopped_clocks: 1,
        releases: 1,
        losses: 0,
        copies: 1,
        writes: 2,
        is_prompt: false,
    };

    /// Messages that are lost, and a crash: for what must happen.
    pub const PROMPT: Self = Self {
        processes: 3,
        ticks: 7,
        messages: 3,
        crashes: 1,
        stopped_clocks: 0,
        releases: 0,
        losses: 2,
        copies: 1,
        writes: 0,
        is_prompt: true,
    };
}

/// The protocol, with a rule left out or none.
#[derive(Clone, Debug)]
pub struct Lease {
    pub bounds: Bounds,
    pub mutant: Option<Mutant>,
}

/// How often each fault has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spent {
    crashes: u8,
    stopped_clocks: u8,
    releases: u8,
    losses: u8,
    copies: u8,
    writes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    now: Tick,
    row: Row,
    processes: Vec<Process>,
    /// Sorted: their order doesn't matter.
    messages: Vec<Message>,
    spent: Spent,
    /// What the properties look at, and no rule.
    seen: Seen,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    /// The process of each grant.
    grants: Vec<Id>,
    highest_accepted: u8,
    accepted_went_back: bool,
    accepted_of_older: bool,
    refused: bool,
    /// The holder has crashed.
    crashed: bool,
    runs_again: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Tick,
    Ask(Id),
    Write(Id),
    Release(Id),
    Crash(Id),
    StopClock(Id),
    GoOn(Id),
    /// The message of this place arrives.
    Deliver(usize),
    /// It arrives, and will arrive again.
    DeliverCopy(usize),
    Lose(usize),
}

impl Lease {
    fn may_tick(&self, state: &State) -> bool {
        let asks = |it: &Process| !it.is_alive() || it.is_stopped || it.has_asked;
        let is_settled = state.messages.is_empty() && state.processes.iter().all(asks);
        state.now < self.bounds.ticks && (!self.bounds.is_prompt || is_settled)
    }

    fn deliver(&self, state: &mut State, message: &Message) {
        let (now, mutant) = (state.now, self.mutant);
        match *message {
            Message::Acquire { from, request } => {
                if let Some(epoch) = state.row.acquire(from, now, mutant) {
                    state.seen.grants.push(from);
                    let grant = state.seen.grants.len() as u8;
                    state.send(Message::Granted { to: from, request, epoch, grant });
                }
            }
            Message::Renew { from, request, epoch } => {
                let extended = state.row.renew(from, epoch, now);
                state.send(Message::Renewed { to: from, request, extended });
            }
            Message::Release { from, epoch } => state.row.release(from, epoch, now, mutant),
            Message::Write { epoch, grant, .. } => {
                let is_accepted = state.row.accepts(epoch, mutant);
                let seen = &mut state.seen;
                seen.refused |= !is_accepted;
                if is_accepted {
                    seen.accepted_of_older |= usize::from(grant) < seen.grants.len();
                    seen.accepted_went_back |= epoch < seen.highest_accepted;
                    seen.highest_accepted = seen.highest_accepted.max(epoch);
                }
            }
            Message::Granted { to, .. } | Message::Renewed { to, .. } => {
                state.processes[usize::from(to)].hear(message, mutant);
            }
        }
    }
}

impl State {
    fn send(&mut self, message: Message) {
        let at = self.messages.partition_point(|it| *it < message);
        self.messages.insert(at, message);
    }

    /// Forgets answers that no process waits for. They would change nothing, and only add states.
    fn forget_stale(&mut self) {
        let processes = &self.processes;
        self.messages.retain(|it| match *it {
            Message::Granted { to, request, .. } | Message::Renewed { to, request, .. } => {
                processes[usize::from(to)].waits_for(request)
            }
            _ => true,
        });
    }

    /// Returns whether the message arrives at a process that does nothing.
    fn is_blocked(&self, message: &Message) -> bool {
        match *message {
            Message::Granted { to, .. } | Message::Renewed { to, .. } => {
                self.processes[usize::from(to)].is_stopped
            }
            _ => false,
        }
    }
}

impl Model for Lease {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 1,
            row: Row::default(),
            processes: vec![Process::new(); self.bounds.processes.into()],
            messages: Vec::new(),
            spent: Spent::default(),
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (bounds, spent) = (&self.bounds, &state.spent);
        if self.may_tick(state) {
            actions.push(Action::Tick);
        }
        let has_room = state.messages.len() < bounds.messages;
        for (id, process) in (0..).zip(&state.processes) {
            if process.is_stopped {
                actions.push(Action::GoOn(id));
                continue;
            }
            if !process.is_alive() {
                continue;
            }
            if has_room && process.may_ask() {
                actions.push(Action::Ask(id));
            }
            if process.runs() {
                if has_room && spent.writes < bounds.writes {
                    actions.push(Action::Write(id));
                }
                if has_room && spent.releases < bounds.releases {
                    actions.push(Action::Release(id));
                }
                // Early enough that the time for another grant is left.
                if spent.crashes < bounds.crashes && state.now <= 2 {
                    actions.push(Action::Crash(id));
                }
                if spent.stopped_clocks < bounds.stopped_clocks {
                    actions.push(Action::StopClock(id));
                }
            }
        }
        for (at, message) in state.messages.iter().enumerate() {
            if state.is_blocked(message) {
                continue;
            }
            actions.push(Action::Deliver(at));
            if spent.copies < bounds.copies && has_room {
                actions.push(Action::DeliverCopy(at));
            }
            if spent.losses < bounds.losses {
                actions.push(Action::Lose(at));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => {
                state.now += 1;
                state.processes.iter_mut().for_each(|it| it.tick(self.mutant));
            }
            Action::Ask(id) => {
                let request = state.processes[usize::from(id)].ask(id, last.now)?;
                state.send(request);
            }
            Action::Write(id) => {
                let Phase::Runs { epoch, grant, .. } = state.processes[usize::from(id)].phase
                else {
                    return None;
                };
                state.spent.writes += 1;
                state.send(Message::Write { from: id, epoch, grant });
            }
            Action::Release(id) => {
                let process = &mut state.processes[usize::from(id)];
                let Phase::Runs { epoch, .. } = process.phase else { return None };
                process.lose(self.mutant);
                state.spent.releases += 1;
                state.send(Message::Release { from: id, epoch });
            }
            Action::Crash(id) => {
                state.processes[usize::from(id)].phase = Phase::Crashed;
                state.spent.crashes += 1;
                state.seen.crashed = true;
            }
            Action::StopClock(id) => {
                state.processes[usize::from(id)].is_stopped = true;
                state.spent.stopped_clocks += 1;
            }
            Action::GoOn(id) => state.processes[usize::from(id)].is_stopped = false,
            Action::Deliver(at) => {
                let message = state.messages.remove(at);
                self.deliver(&mut state, &message);
            }
            Action::DeliverCopy(at) => {
                state.spent.copies += 1;
                let message = state.messages[at].clone();
                self.deliver(&mut state, &message);
            }
            Action::Lose(at) => {
                state.spent.losses += 1;
                state.messages.remove(at);
            }
        }
        state.forget_stale();
        state.seen.runs_again |= state.seen.crashed && state.processes.iter().any(Process::runs);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("each accepted write is of the last grant", |_, state: &State| {
                !state.seen.accepted_of_older
            }),
            Property::always("accepted tokens never go back", |_, state: &State| {
                !state.seen.accepted_went_back
            }),
            Property::always("two run only if a clock has stopped", |_, state: &State| {
                let is_right =
                    |it: &&Process| matches!(it.phase, Phase::Runs { clock_stopped: false, .. });
                state.processes.iter().filter(is_right).count() <= 1
            }),
        ];
        if self.bounds.is_prompt {
            let runs_again = |model: &Self, state: &State| {
                let no_crash = !state.seen.crashed && state.now == model.bounds.ticks;
                no_crash || state.seen.runs_again
            };
            properties.push(Property::eventually("a process runs after a crash", runs_again));
        }
        if self.bounds.writes > 0 {
            // No promise: it shows that the bounds leave room for what the others are about.
            let refused = |_: &Self, state: &State| state.seen.refused;
            properties.push(Property::sometimes("an older write is refused", refused));
        }
        properties
    }
}
