//! A process, as in `src/lease/guard.rs`: what it knows by its own clock.

use crate::row::{Id, Mutant, Tick};

/// How long after the last renewal a process ends its run. It counts from before the request was sent.
pub const DEADLINE: Tick = 2;

/// A message, in either direction. A request is known by the tick in which it was sent, which the process doesn't use
/// otherwise. A lease that isn't granted is no message: the process asks again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    Acquire {
        from: Id,
        request: Tick,
    },
    Renew {
        from: Id,
        request: Tick,
        epoch: u8,
    },
    Release {
        from: Id,
        epoch: u8,
    },
    /// `grant` is the number of the grant. Only the properties know it.
    Write {
        from: Id,
        epoch: u8,
        grant: u8,
    },
    Granted {
        to: Id,
        request: Tick,
        epoch: u8,
        grant: u8,
    },
    Renewed {
        to: Id,
        request: Tick,
        extended: bool,
    },
}

/// The request whose answer counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InFlight {
    pub sent_in: Tick,
    /// How long ago it was sent, by the clock of the process.
    pub age: Tick,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Standby,
    /// Its run goes on. `age`: how long ago it sent the last request that was answered with yes.
    Runs {
        epoch: u8,
        grant: u8,
        age: Tick,
        clock_stopped: bool,
    },
    Crashed,
    /// It has given up. Only a mutant does.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub phase: Phase,
    pub in_flight: Option<InFlight>,
    /// Its clock has stopped, and it does nothing.
    pub is_stopped: bool,
    /// Whether it has sent a request in this tick.
    pub has_asked: bool,
}

impl Process {
    pub fn new() -> Self {
        Self { phase: Phase::Standby, in_flight: None, is_stopped: false, has_asked: false }
    }

    pub fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Crashed | Phase::Gone)
    }

    /// Returns whether it may send a request: it has sent none in this tick, and waits for none of this tick.
    pub fn may_ask(&self) -> bool {
        self.is_alive() && !self.has_asked && self.in_flight.as_ref().is_none_or(|it| it.age > 0)
    }

    pub fn runs(&self) -> bool {
        matches!(self.phase, Phase::Runs { .. })
    }

    /// Sends the next request, and returns it.
    pub fn ask(&mut self, id: Id, request: Tick) -> Option<Message> {
        let message = match self.phase {
            Phase::Standby => Message::Acquire { from: id, request },
            Phase::Runs { epoch, .. } => Message::Renew { from: id, request, epoch },
            Phase::Crashed | Phase::Gone => return None,
        };
        self.has_asked = true;
        self.in_flight = Some(InFlight { sent_in: request, age: 0 });
        Some(message)
    }

    /// Returns whether an answer to this request still counts.
    pub fn waits_for(&self, request: Tick) -> bool {
        self.in_flight.as_ref().is_some_and(|it| it.sent_in == request)
    }

    /// Takes the answer that it waits for.
    pub fn hear(&mut self, answer: &Message, mutant: Option<Mutant>) {
        let Some(InFlight { age: sent, .. }) = self.in_flight.take() else { return };
        let sent = if mutant == Some(Mutant::CountsFromAnswer) { 0 } else { sent };
        match (&mut self.phase, answer) {
            (Phase::Standby, Message::Granted { epoch, grant, .. }) if sent < DEADLINE => {
                let (epoch, grant) = (*epoch, *grant);
                self.phase = Phase::Runs { epoch, grant, age: sent, clock_stopped: false };
            }
            (Phase::Runs { age, .. }, Message::Renewed { extended: true, .. }) => *age = sent,
            (Phase::Runs { .. }, Message::Renewed { extended: false, .. }) => self.lose(mutant),
            _ => {}
        }
    }

    /// Notes that a tick has passed.
    pub fn tick(&mut self, mutant: Option<Mutant>) {
        self.has_asked = false;
        if self.is_stopped {
            if let Phase::Runs { clock_stopped, .. } = &mut self.phase {
                *clock_stopped = true;
            }
            return;
        }
        if let Some(request) = &mut self.in_flight {
            request.age += 1;
        }
        // It waits no longer for an answer.
        self.in_flight.take_if(|it| it.age > DEADLINE);
        if let Phase::Runs { age, .. } = &mut self.phase {
            *age += 1;
            if *age >= DEADLINE {
                self.lose(mutant);
            }
        }
    }

    /// Ends its run.
    pub fn lose(&mut self, mutant: Option<Mutant>) {
        self.in_flight = None;
        self.phase = if mutant == Some(Mutant::GivesUp) { Phase::Gone } else { Phase::Standby };
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}
