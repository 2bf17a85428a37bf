use super::*;

mod properties;

/// Without jitter, and with a timeout of 3 s.
const TIMES: LeaseTimes = LeaseTimes {
    ttl: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(9),
    retry: Duration::from_secs(2),
    poll: Duration::from_millis(500),
    jitter: 0.0,
};

/// A guard, and the time in milliseconds.
struct World {
    guard: Guard,
    began: Instant,
    now: u64,
    suspended: u64,
}

impl World {
    fn new() -> Self {
        Self::with(TIMES)
    }

    fn with(times: LeaseTimes) -> Self {
        let began = Instant::now();
        let now = LeaseInstant::new(began, Duration::ZERO);
        Self {
            guard: Guard::new(times, fastrand::Rng::with_seed(0), now),
            began,
            now: 0,
            suspended: 0,
        }
    }

    /// A guard that holds the lease since the time 0.
    fn holding() -> Self {
        let mut world = Self::new();
        assert_eq!(world.steps(), "acquire, wait 3000");
        assert_eq!(world.answer(granted(1)), "granted 1, wait 500");
        world
    }

    fn now(&self) -> LeaseInstant {
        let awake = self.began + Duration::from_millis(self.now);
        LeaseInstant::new(awake, Duration::from_millis(self.suspended))
    }

    /// Returns all steps up to a wait or the end.
    fn steps(&mut self) -> String {
        let now = self.now();
        let mut steps = Vec::new();
        loop {
            let step = self.guard.step(now);
            steps.push(match &step {
                GuardStep::Report(LeaseChange::Standby { holder, problem }) => {
                    let holder = holder.as_deref().unwrap_or("unknown");
                    let problem = problem.iter().map(|problem| format!(" ({problem})"));
                    format!("standby behind {holder}{}", problem.collect::<String>())
                }
                GuardStep::Report(LeaseChange::Granted(token)) => format!("granted {token}"),
                GuardStep::Report(LeaseChange::Lost(reason)) => format!("lost: {reason}"),
                GuardStep::Log(Line::NotAsked { problem, waited }) => {
                    format!("log {problem} for {waited:?}")
                }
                GuardStep::Log(Line::NotRenewed { problem, lost_in }) => {
                    format!("log {problem}, lost in {lost_in:?}")
                }
                GuardStep::Log(Line::RenewedAgain) => "log renewed".to_owned(),
                GuardStep::Log(Line::NotReleased { problem }) => {
                    format!("log not released: {problem}")
                }
                GuardStep::Send(GuardRequest::Acquire) => "acquire".to_owned(),
                GuardStep::Send(GuardRequest::Renew(token)) => format!("renew {token}"),
                GuardStep::Send(GuardRequest::Release(token)) => format!("release {token}"),
                GuardStep::Drop => "drop".to_owned(),
                GuardStep::Wait(until) => format!("wait {}", (*until - self.began).as_millis()),
                GuardStep::Done => "done".to_owned(),
            });
            if matches!(step, GuardStep::Wait(_) | GuardStep::Done) {
                return steps.join(", ");
            }
        }
    }

    fn at(&mut self, now: u64) -> String {
        self.now = now;
        self.steps()
    }

    fn answer(&mut self, answer: Answer) -> String {
        let now = self.now();
        self.guard.on_answer(answer, now);
        self.steps()
    }

    fn end(&mut self, end: LeaseEnd) -> String {
        let now = self.now();
        self.guard.end(end, now);
        self.steps()
    }

    /// Goes on to a time while the lease is held, where each request to renew is answered at once.
    fn renewed_until(&mut self, until: u64) {
        for now in (self.now..=until).step_by(500) {
            if self.at(now).starts_with("renew") {
                self.answer(EXTENDED);
            }
        }
    }
}

const EXTENDED: Answer = Answer::Renewed(Renewed::Extended);
const RELEASED: Answer = Answer::Released(Released::Released);

fn granted(token: u64) -> Answer {
    Answer::Acquired(Acquired::Granted(FencingToken::new(token)))
}

fn held(by: &str) -> Answer {
    Answer::Acquired(Acquired::Held { by: Some(by.into()) })
}

fn unknown(problem: &str) -> Answer {
    Answer::Unknown(problem.into())
}

#[test]
fn a_standby_asks_every_poll_from_request_to_request() {
    let mut world = World::new();
    assert_eq!(world.steps(), "acquire, wait 3000");
    assert_eq!(world.at(100), "wait 3000", "one request at a time");
    assert_eq!(world.answer(held("b")), "standby behind b, wait 500");
    assert_eq!(world.at(499), "wait 500");
    assert_eq!(world.at(500), "acquire, wait 3500");
    // An answer that takes longer than the poll is followed by the next request at once.
    assert_eq!(world.at(1_200), "wait 3500");
    assert_eq!(world.answer(held("b")), "acquire, wait 4200");
    assert_eq!(world.answer(granted(1)), "granted 1, wait 1700");
}

#[test]
fn a_standby_is_reported_when_its_holder_or_its_problem_changes() {
    let mut world = World::new();
    let mut reported = |answer| {
        let now = world.now + 10_000;
        world.at(now);
        let steps = world.answer(answer);
        steps.rsplit_once(", wait").map(|(reported, _)| reported.to_owned())
    };
    let by_unknown = || Answer::Acquired(Acquired::Held { by: None });
    for (answer, expected) in [
        (by_unknown(), Some("standby behind unknown")),
        (by_unknown(), None),
        (held("b"), Some("standby behind b")),
        (held("b"), None),
        (held("c"), Some("standby behind c")),
        (unknown("no route"), Some("standby behind c (no route)")),
        (unknown("no route"), None),
        (unknown("refused"), Some("standby behind c (refused)")),
        (held("c"), Some("standby behind c")),
        (granted(7), Some("granted 7")),
    ] {
        assert_eq!(reported(answer).as_deref(), expected);
    }
}

#[test]
fn a_request_that_is_not_answered_in_time_is_dropped_and_the_next_one_follows() {
    let mut world = World::new();
    world.steps();
    assert_eq!(world.at(2_999), "wait 3000");
    assert_eq!(
        world.at(3_000),
        "drop, standby behind unknown (no answer within 3s), acquire, wait 6000"
    );
    assert_eq!(world.at(6_000), "drop, acquire, wait 9000");
    assert_eq!(world.at(9_000), "drop, acquire, wait 12000");
    assert_eq!(world.at(12_000), "drop, wait 13000");
    assert_eq!(world.at(13_000), "log no answer within 3s for 10s, acquire, wait 16000");
}

#[test]
fn a_standby_asks_an_engine_that_fails_less_and_less_often_and_a_holder_every_poll() {
    let mut world = World::new();
    world.steps();
    let mut asked = Vec::new();
    for (answer, times) in [(unknown("no route"), 7), (held("b"), 2), (unknown("no route"), 1)] {
        for _ in 0..times {
            let steps = world.answer(answer.clone());
            let (_, next) = steps.rsplit_once("wait ").unwrap();
            let mut next = next.parse().unwrap();
            // The line about it is due before.
            while !world.at(next).contains("acquire") {
                next += 500;
            }
            asked.push(next);
        }
    }
    let expected = [500, 1_500, 3_500, 7_500, 15_500, 25_500, 35_500, 36_000, 36_500, 37_000];
    assert_eq!(asked, expected);
}

#[test]
fn a_lease_is_renewed_every_retry_and_the_clock_is_read_in_between() {
    let mut world = World::holding();
    for (now, expected) in [(500, "wait 1000"), (1_000, "wait 1500"), (1_600, "wait 2000")] {
        assert_eq!(world.at(now), expected);
    }
    assert_eq!(world.at(2_000), "renew 1, wait 2500");
    assert_eq!(world.at(2_100), "wait 2600");
    assert_eq!(world.answer(EXTENDED), "wait 2600");
    assert_eq!(world.at(4_000), "renew 1, wait 4500");
}

#[test]
fn a_grant_and_a_renewal_count_from_before_the_request() {
    let mut world = World::new();
    world.steps();
    world.now = 2_900;
    // Renewed at once, because it has been held for longer than `retry`.
    assert_eq!(world.answer(granted(1)), "granted 1, renew 1, wait 3400");
    world.at(5_800);
    assert_eq!(world.answer(EXTENDED), "renew 1, wait 6300");
    // The last success was sent at 2.9 s, and answered at 5.8 s.
    assert_eq!(world.at(11_899), "drop, log no answer within 3s, lost in 1ms, renew 1, wait 11900");
    assert_eq!(world.at(11_900), "lost: not renewed within 9s: no answer within 3s, drop, done");
}

#[test]
fn a_lease_is_lost_if_it_is_not_renewed_in_time_and_nothing_is_sent_after_that() {
    let mut world = World::holding();
    world.at(2_000);
    assert_eq!(world.answer(unknown("no route")), "log no route, lost in 7s, wait 2500");
    for now in [4_000, 6_000, 8_000] {
        assert_eq!(world.at(now), format!("renew 1, wait {}", now + 500));
        assert!(world.answer(unknown("refused")).starts_with("wait"), "logged once");
    }
    assert_eq!(world.at(8_999), "wait 9000");
    assert_eq!(world.at(9_000), "lost: not renewed within 9s: refused, done");
    assert_eq!(world.at(60_000), "done");
    assert_eq!(world.end(LeaseEnd::Release), "done");
}

#[test]
fn an_engine_that_never_answers_delays_no_loss() {
    let mut world = World::holding();
    assert_eq!(world.at(2_000), "renew 1, wait 2500");
    assert_eq!(world.at(5_000), "drop, log no answer within 3s, lost in 4s, renew 1, wait 5500");
    assert_eq!(world.at(8_000), "drop, renew 1, wait 8500");
    assert_eq!(world.at(9_000), "lost: not renewed within 9s: no answer within 3s, drop, done");
}

#[test]
fn a_renewal_after_failures_keeps_the_lease() {
    let mut world = World::holding();
    world.at(2_000);
    world.answer(unknown("no route"));
    world.at(8_000);
    assert_eq!(world.answer(EXTENDED), "log renewed, wait 8500");
    world.at(10_000);
    assert_eq!(world.answer(unknown("no route")), "log no route, lost in 7s, wait 10500");
    assert!(world.at(16_999).ends_with("wait 17000"));
    assert!(world.at(17_000).starts_with("lost"));
}

#[test]
fn a_refusal_loses_the_lease_at_once() {
    let mut world = World::holding();
    world.at(2_000);
    assert_eq!(
        world.answer(Answer::Renewed(Renewed::Lost)),
        "lost: not renewed: the lease has expired, or another holder has it, done"
    );
    assert_eq!(world.end(LeaseEnd::Release), "done");
}

#[test]
fn a_grant_that_comes_too_late_is_given_back_and_requested_again() {
    let mut world = World::new();
    world.steps();
    // The program was paused, so that no timeout has fired.
    world.now = 9_000;
    assert_eq!(world.answer(granted(1)), "release 1, wait 12000");
    world.now = 9_100;
    assert_eq!(world.answer(RELEASED), "wait 9500");
    assert_eq!(world.at(9_500), "acquire, wait 12500");

    // Also if the release is not answered.
    world.now = 18_500;
    assert_eq!(world.answer(granted(2)), "release 2, wait 21500");
    assert_eq!(world.at(21_500), "drop, acquire, wait 24500");

    // A moment earlier, it is used, and renewed at once.
    world.now = 30_499;
    assert_eq!(world.answer(granted(3)), "granted 3, renew 3, wait 30500");
}

#[test]
fn a_program_that_was_paused_has_lost_the_lease_unless_a_renewal_was_answered() {
    let mut world = World::holding();
    world.renewed_until(2_000);
    assert_eq!(
        world.at(11_000),
        "lost: not renewed within 9s: the program was paused or blocked, done"
    );

    let mut world = World::holding();
    world.renewed_until(4_000);
    world.at(6_000);
    world.now = 14_999;
    assert_eq!(world.answer(EXTENDED), "renew 1, wait 15000", "it counts from 6 s on");
    world.now = 15_000;
    assert_eq!(world.answer(EXTENDED), "wait 15500");

    let mut world = World::holding();
    world.renewed_until(4_000);
    world.at(6_000);
    world.now = 15_000;
    assert!(world.answer(EXTENDED).starts_with("lost: "), "answered too late");
}

#[test]
fn the_time_of_a_suspend_counts() {
    let mut world = World::holding();
    world.renewed_until(4_000);
    world.suspended = 20_000;
    assert_eq!(world.at(4_100), "lost: not renewed: the machine was suspended for 20s, done");

    // A short one only takes its part of the deadline: 5 s of 9 s.
    let mut world = World::holding();
    world.renewed_until(4_000);
    world.suspended = 5_000;
    assert_eq!(world.at(4_100), "renew 1, wait 9600");
    assert_eq!(
        world.at(7_100),
        "drop, log no answer within 3s, lost in 900ms, renew 1, wait 12600"
    );
    let text = "lost: not renewed: the machine was suspended for 5s, drop, done";
    assert_eq!(world.at(8_000), text, "awake, it would have 5 s left");

    // A suspend before the last renewal is no reason.
    let mut world = World::holding();
    world.suspended = 5_000;
    assert_eq!(world.at(500), "renew 1, wait 6000");
    world.answer(EXTENDED);
    world.at(2_500);
    world.answer(unknown("no route"));
    assert_eq!(world.at(9_500), "lost: not renewed within 9s: no route, done");
}

#[test]
fn a_grant_that_was_suspended_on_its_way_is_given_back() {
    let mut world = World::new();
    world.steps();
    world.now = 100;
    world.suspended = 8_900;
    assert_eq!(world.answer(granted(1)), "release 1, wait 12000");
}

#[test]
fn a_held_lease_is_released_at_the_end_unless_it_is_abandoned() {
    let mut world = World::holding();
    world.now = 1_000;
    assert_eq!(world.end(LeaseEnd::Release), "release 1, wait 1666");
    assert_eq!(world.answer(RELEASED), "done");

    let mut world = World::holding();
    world.now = 1_000;
    assert_eq!(world.end(LeaseEnd::Release), "release 1, wait 1666");
    assert_eq!(world.answer(Answer::Released(Released::NotHeld)), "done");

    let mut world = World::holding();
    world.at(2_000);
    assert_eq!(world.end(LeaseEnd::Release), "drop, release 1, wait 2666", "not renewed any more");

    let mut world = World::holding();
    world.at(2_000);
    assert_eq!(world.end(LeaseEnd::Abandon), "drop, done");
}

#[test]
fn a_release_is_tried_three_times_within_two_seconds() {
    let mut world = World::holding();
    assert_eq!(world.end(LeaseEnd::Release), "release 1, wait 666");
    assert_eq!(world.answer(unknown("no route")), "wait 666");
    assert_eq!(world.at(667), "release 1, wait 1333");
    assert_eq!(world.at(1_334), "drop, release 1, wait 2000");
    assert_eq!(world.at(2_000), "drop, log not released: no answer within 3s, done");

    let mut world = World::holding();
    world.end(LeaseEnd::Release);
    for now in [667, 1_334] {
        world.answer(unknown("no route"));
        world.at(now);
    }
    assert_eq!(world.answer(unknown("refused")), "log not released: refused, done");
}

#[test]
fn a_release_is_not_tried_beyond_the_expiry() {
    let mut world = World::holding();
    // As if the program were paused: the loss was not noticed before the end.
    world.now = 14_100;
    assert_eq!(world.end(LeaseEnd::Release), "release 1, wait 14400");
    assert_eq!(world.at(15_000), "drop, log not released: no answer within 3s, done");

    let mut world = World::holding();
    world.now = 15_000;
    assert_eq!(world.end(LeaseEnd::Release), "done");
}

#[test]
fn at_the_end_of_a_standby_the_answer_in_flight_is_waited_for() {
    for end in [LeaseEnd::Release, LeaseEnd::Abandon] {
        let mut world = World::new();
        world.steps();
        world.now = 100;
        assert_eq!(world.end(end), "wait 2100");
        world.now = 600;
        assert_eq!(world.answer(granted(1)), "release 1, wait 1100", "not reported");
        assert_eq!(world.answer(RELEASED), "done");

        for answer in [held("b"), unknown("no route")] {
            let mut world = World::new();
            world.steps();
            world.end(end);
            assert_eq!(world.answer(answer), "done");
        }

        let mut world = World::new();
        world.steps();
        world.now = 100;
        world.end(end);
        assert_eq!(world.at(2_100), "drop, done");

        // Not longer than any answer is waited for.
        let mut world = World::new();
        world.steps();
        world.now = 2_000;
        assert_eq!(world.end(end), "wait 3000");
        assert_eq!(world.at(3_000), "drop, done");

        // Nothing is in flight.
        let mut world = World::new();
        world.steps();
        world.answer(held("b"));
        assert_eq!(world.end(end), "done");
    }
}

#[test]
fn at_the_end_of_a_standby_a_grant_is_not_released_beyond_its_expiry() {
    let (ttl, renew_deadline) = (Duration::from_millis(1_000), Duration::from_millis(900));
    let mut world = World::with(LeaseTimes { ttl, renew_deadline, ..TIMES });
    assert_eq!(world.steps(), "acquire, wait 300");
    world.now = 100;
    world.end(LeaseEnd::Release);
    world.now = 250;
    // It expires 1 s after the request, so that each of three attempts has 250 ms.
    assert_eq!(world.answer(granted(1)), "release 1, wait 500");
}

#[test]
fn a_grant_that_came_too_late_is_given_back_at_the_end_too() {
    for end in [LeaseEnd::Release, LeaseEnd::Abandon] {
        let mut world = World::new();
        world.steps();
        world.now = 9_000;
        world.answer(granted(1));
        assert_eq!(world.end(end), "drop, release 1, wait 9666");
        assert_eq!(world.answer(RELEASED), "done");
    }
}

#[test]
fn an_answer_to_no_request_changes_nothing() {
    let mut world = World::holding();
    assert_eq!(world.answer(Answer::Renewed(Renewed::Lost)), "wait 500");
    world.at(2_000);
    assert_eq!(world.answer(granted(9)), "wait 2500");
    assert_eq!(world.at(4_000), "renew 1, wait 4500");
}

#[test]
fn a_loss_says_why() {
    let within = Duration::from_secs(10);
    let problem = Some("no answer within 3s".into());
    let suspended = Duration::from_millis(20_500);
    for (reason, text) in [
        (LossReason::Refused, "not renewed: the lease has expired, or another holder has it"),
        (LossReason::NotRenewed { within, problem }, "not renewed within 10s: no answer within 3s"),
        (
            LossReason::NotRenewed { within, problem: None },
            "not renewed within 10s: the program was paused or blocked",
        ),
        (LossReason::Suspended { suspended }, "not renewed: the machine was suspended for 20.5s"),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}
