//! How the work grows with the number of children: counted in effects, since no test reads a clock.
//! `benches/scaling` measures the time.

use std::sync::Arc;
use std::time::Instant;

use crate::core::user_code::NoUserCode;
use crate::core::{ChildRequest, Effect, Machine, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::policy::{ChildOptions, Rules};

/// The work to start and stop children that obey.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    events: usize,
    effects: usize,
    /// The most effects that one event had.
    largest: usize,
}

/// Applies the effects of a machine and counts them.
struct CountingDriver {
    machine: Machine,
    now: Instant,
    work: Work,
    finished: bool,
}

impl CountingDriver {
    fn dispatch(&mut self, event: MachineEvent) {
        let mut pending = vec![event];
        while let Some(event) = pending.pop() {
            let mut effects = Vec::new();
            self.machine.on_event(event, self.now, &mut NoUserCode, &mut effects);
            self.work.events += 1;
            self.work.effects += effects.len();
            self.work.largest = self.work.largest.max(effects.len());
            for effect in effects {
                match effect {
                    Effect::Cancel { key } => {
                        let incarnation = self.machine.view(key, self.now).unwrap().incarnation;
                        let reason = ExitReason::Shutdown;
                        pending.push(MachineEvent::Exited { key, incarnation, reason });
                    }
                    Effect::Finish(_) => self.finished = true,
                    _ => {}
                }
            }
            let due = self.machine.next_deadline().is_some_and(|at| at <= self.now);
            if due && pending.is_empty() {
                pending.push(MachineEvent::Tick);
            }
        }
    }
}

fn driver(machine: Machine, now: Instant) -> CountingDriver {
    let work = Work { events: 0, effects: 0, largest: 0 };
    CountingDriver { machine, now, work, finished: false }
}

/// Starts and terminates the children one by one, each by a request; then the supervisor stops.
fn work_one_by_one(machine: Machine, now: Instant, children: usize) -> Work {
    let mut driver = driver(machine, now);
    driver.dispatch(MachineEvent::Tick);
    let options = Arc::new(ChildOptions::default());
    let keys: Vec<_> =
        (0..children).map(|_| driver.machine.add(Arc::clone(&options), now)).collect();
    for request in [ChildRequest::StartNew { keep: false }, ChildRequest::Terminate] {
        for (ticket, &key) in (0..).zip(&keys) {
            driver.dispatch(MachineEvent::Request { ticket, key, request });
        }
    }
    driver.dispatch(MachineEvent::Stop { within: None });
    assert!(driver.finished, "{children} children are left");
    driver.work
}

fn work(machine: Machine, now: Instant, children: usize, by_request: bool) -> Work {
    let mut driver = driver(machine, now);
    let options = Arc::new(ChildOptions::default());
    for ticket in 0..children {
        let key = driver.machine.add(Arc::clone(&options), now);
        if by_request {
            driver.dispatch(MachineEvent::Request {
                ticket: ticket as u64,
                key,
                request: ChildRequest::StartNew { keep: false },
            });
        }
    }
    driver.dispatch(MachineEvent::Tick);
    driver.dispatch(MachineEvent::Stop { within: None });
    assert!(driver.finished, "{children} children are left");
    driver.work
}

#[test]
fn otp_39_a_hundred_times_the_children_are_a_hundred_times_the_work() {
    let now = Instant::now();
    let ordered = |children| work(Machine::ordered(Rules::default(), 0, now), now, children, false);
    let dynamic = |children| work(Machine::dynamic(Rules::default(), now), now, children, true);
    let ordered_one_by_one =
        |children| work_one_by_one(Machine::ordered(Rules::default(), 0, now), now, children);
    let dynamic_one_by_one =
        |children| work_one_by_one(Machine::dynamic(Rules::default(), now), now, children);
    for (kind, few, many) in [
        ("ordered", ordered(1_000), ordered(100_000)),
        ("dynamic", dynamic(1_000), dynamic(100_000)),
        ("ordered, one by one", ordered_one_by_one(1_000), ordered_one_by_one(100_000)),
        ("dynamic, one by one", dynamic_one_by_one(1_000), dynamic_one_by_one(100_000)),
    ] {
        // Besides what each child takes there are `Up` and `Finish`.
        assert_eq!(many.effects - 2, 100 * (few.effects - 2), "{kind}");
        assert!(many.events <= 100 * few.events, "{kind}: {few:?}, {many:?}");
        assert!(many.largest <= 8 * SLICE, "{kind}: no event does more than a slice, {many:?}");
    }
}
