//! Random answers, pauses, suspends and ends, and what is true at each step.

use proptest::prelude::*;

use super::*;

/// What happens next.
#[derive(Clone, Debug)]
enum Happens {
    /// Time passes, up to where the guard wants to look next.
    Wait {
        part: f64,
    },
    /// Time passes, and the guard doesn't look. The machine may be suspended for a part of it.
    Pause {
        millis: u64,
        suspended: bool,
    },
    Answer {
        yes: Option<bool>,
    },
    /// An answer after a time in which the guard doesn't look.
    LateAnswer {
        millis: u64,
        suspended: bool,
        yes: Option<bool>,
    },
    End(LeaseEnd),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (0.0..=1.5).prop_map(|part| Happens::Wait { part }),
        1 => (0..20_000_u64, any::<bool>())
            .prop_map(|(millis, suspended)| Happens::Pause { millis, suspended }),
        6 => any::<Option<bool>>().prop_map(|yes| Happens::Answer { yes }),
        1 => (0..20_000_u64, any::<bool>(), any::<Option<bool>>())
            .prop_map(|(millis, suspended, yes)| Happens::LateAnswer { millis, suspended, yes }),
        1 => prop_oneof![Just(LeaseEnd::Release), Just(LeaseEnd::Abandon)].prop_map(Happens::End),
    ]
}

fn times() -> impl Strategy<Value = LeaseTimes> {
    (2..20_000_u64, 0.1..1.0, 0.0..1.0, 1..3_000_u64, 0.0..=1.0).prop_map(
        |(ttl, deadline, retry, poll, jitter)| {
            let ttl = Duration::from_millis(ttl);
            let renew_deadline = ttl.mul_f64(deadline).max(Duration::from_millis(1));
            LeaseTimes {
                ttl,
                renew_deadline,
                retry: renew_deadline.mul_f64(retry / 2.0).max(Duration::from_micros(1)),
                poll: Duration::from_millis(poll),
                jitter,
            }
        },
    )
}

/// What is known about the guard from outside.
struct Seen {
    times: LeaseTimes,
    now: LeaseInstant,
    in_flight: Option<(GuardRequest, LeaseInstant)>,
    /// The token, and when the last request with the answer *yes* was sent.
    held: Option<(FencingToken, LeaseInstant)>,
    /// When the last request was sent.
    last: Option<(GuardRequest, LeaseInstant)>,
    /// A grant that wasn't reported has to be given back.
    owed: Option<FencingToken>,
    /// The grant that is given back. At the end, this is tried more than once.
    given_back: Option<FencingToken>,
    ended: Option<(LeaseEnd, LeaseInstant)>,
    lost: bool,
    last_token: u64,
}

impl Seen {
    fn wait_beyond(&self, wait: Duration) -> bool {
        self.last.is_none_or(|(_, sent)| self.now.since(sent) >= wait)
    }

    fn sent(&mut self, request: GuardRequest) -> Result<(), TestCaseError> {
        prop_assert!(self.in_flight.is_none(), "two requests at once");
        prop_assert!(!self.lost, "{request:?} after a loss");
        match request {
            GuardRequest::Acquire => {
                prop_assert!(self.held.is_none() && self.ended.is_none());
                prop_assert!(self.owed.is_none(), "a grant wasn't given back");
                let polled = !matches!(
                    self.last,
                    Some((GuardRequest::Acquire | GuardRequest::Release(_), _))
                ) || self.wait_beyond(self.times.poll);
                prop_assert!(polled, "requested too often");
            }
            GuardRequest::Renew(token) => {
                prop_assert_eq!(self.held.map(|held| held.0), Some(token));
                prop_assert!(self.ended.is_none());
                let (_, sent) = self.held.unwrap();
                prop_assert!(self.now.since(sent) >= self.times.retry, "renewed too often");
            }
            GuardRequest::Release(token) => match (self.held, self.ended) {
                (Some((held, sent)), Some((LeaseEnd::Release, _))) => {
                    prop_assert_eq!(held, token);
                    prop_assert!(
                        self.now.since(sent) < self.times.ttl,
                        "released after the expiry"
                    );
                }
                (None, Some(_)) if self.owed.is_none() => {
                    prop_assert_eq!(self.given_back, Some(token));
                }
                (None, _) => {
                    self.given_back = self.owed.take();
                    prop_assert_eq!(self.given_back, Some(token));
                }
                unasked => prop_assert!(false, "released without need: {unasked:?}"),
            },
        }
        self.in_flight = Some((request, self.now));
        self.last = self.in_flight;
        Ok(())
    }

    fn saw(&mut self, step: &GuardStep) -> Result<(), TestCaseError> {
        match step {
            GuardStep::Send(request) => return self.sent(*request),
            GuardStep::Drop => prop_assert!(self.in_flight.take().is_some(), "nothing to drop"),
            GuardStep::Report(change) => {
                prop_assert!(self.ended.is_none() && !self.lost, "reported after the end");
                match change {
                    LeaseChange::Granted(token) => {
                        prop_assert_eq!(self.owed.take(), Some(*token));
                        let (_, sent) = self.last.unwrap();
                        self.held = Some((*token, sent));
                    }
                    LeaseChange::Lost(_) => {
                        prop_assert!(self.held.is_some());
                        self.lost = true;
                    }
                    LeaseChange::Standby { .. } => prop_assert!(self.held.is_none()),
                }
            }
            GuardStep::Wait(until) => {
                prop_assert!(*until > self.now.at(), "a wait that is over");
                if let Some((_, at)) = self.ended {
                    prop_assert!(*until <= at.at() + END_WITHIN);
                } else if let Some((_, sent)) = self.held {
                    let within = self.times.renew_deadline;
                    prop_assert!(self.now.since(sent) < within, "held for too long");
                    prop_assert!(*until <= sent.at() + within, "a loss that would be missed");
                }
            }
            GuardStep::Done => prop_assert!(self.lost || self.ended.is_some(), "gave up"),
            GuardStep::Log(_) => {}
        }
        Ok(())
    }

    fn answer(&mut self, yes: Option<bool>) -> Option<Answer> {
        let (request, sent) = self.in_flight.take()?;
        Some(match (request, yes) {
            (_, None) => Answer::Unknown("no route".into()),
            (GuardRequest::Acquire, Some(true)) => {
                self.last_token += 1;
                let token = FencingToken::new(self.last_token);
                self.owed = Some(token);
                Answer::Acquired(Acquired::Granted(token))
            }
            (GuardRequest::Acquire, Some(false)) => Answer::Acquired(Acquired::Held { by: None }),
            (GuardRequest::Renew(_), Some(true)) => {
                self.held.iter_mut().for_each(|held| held.1 = sent);
                EXTENDED
            }
            (GuardRequest::Renew(_), Some(false)) => Answer::Renewed(Renewed::Lost),
            (GuardRequest::Release(_), Some(true)) => RELEASED,
            (GuardRequest::Release(_), Some(false)) => Answer::Released(Released::NotHeld),
        })
    }
}

fn run(times: LeaseTimes, seed: u64, script: Vec<Happens>) -> Result<(), TestCaseError> {
    let (mut awake, mut suspended) = (Instant::now(), Duration::ZERO);
    let now = LeaseInstant::new(awake, suspended);
    let mut guard = Guard::new(times, fastrand::Rng::with_seed(seed), now);
    let mut seen = Seen {
        times,
        now,
        in_flight: None,
        held: None,
        last: None,
        owed: None,
        given_back: None,
        ended: None,
        lost: false,
        last_token: 0,
    };
    for happens in script {
        // All steps up to a wait, which are not many.
        let wait = 'steps: {
            for _ in 0..10 {
                let step = guard.step(seen.now);
                seen.saw(&step)?;
                match step {
                    GuardStep::Wait(until) => break 'steps until.duration_since(seen.now.at()),
                    GuardStep::Done => {
                        prop_assert!(seen.in_flight.is_none());
                        // Unless the grant has expired, or the end has taken too long.
                        let too_late = seen.wait_beyond(times.ttl)
                            || seen.ended.is_some_and(|(_, at)| seen.now.since(at) >= END_WITHIN);
                        prop_assert!(too_late || seen.owed.is_none(), "not given back");
                        return Ok(());
                    }
                    _ => {}
                }
            }
            return Err(TestCaseError::fail("steps without end"));
        };
        match happens {
            Happens::Wait { part } => awake += wait.mul_f64(part),
            Happens::Pause { millis, suspended: is_suspended }
            | Happens::LateAnswer { millis, suspended: is_suspended, .. } => {
                let pause = Duration::from_millis(millis);
                if is_suspended { suspended += pause } else { awake += pause }
            }
            Happens::Answer { .. } => {}
            Happens::End(end) if seen.ended.is_none() => {
                guard.end(end, seen.now);
                seen.ended = Some((end, seen.now));
            }
            Happens::End(_) => {}
        }
        seen.now = LeaseInstant::new(awake, suspended);
        if let Happens::Answer { yes } | Happens::LateAnswer { yes, .. } = happens
            && let Some(answer) = seen.answer(yes)
        {
            guard.on_answer(answer, seen.now);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::random_cases::cases(100))]

    #[test]
    fn the_invariants_hold_whatever_happens(
        times in times(),
        seed: u64,
        script in prop::collection::vec(happens(), 0..80),
    ) {
        run(times, seed, script)?;
    }
}
