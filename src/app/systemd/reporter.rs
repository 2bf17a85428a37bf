//! What to tell systemd, when, and in which words. Pure: no clock and no socket.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::start_of::start_of;

/// How often a stop asks for more time, how much, and how much more than it may take.
const EXTEND_EVERY: Duration = Duration::from_secs(5);
const EXTEND_BY: Duration = Duration::from_secs(15);
const MARGIN: Duration = Duration::from_secs(5);
/// How long a tree has to be ready for its earlier restarts by systemd to be forgotten.
const HEALTHY: Duration = Duration::from_secs(30);

/// Something that happened to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SystemdNotice {
    /// The tree is ready, at first or again.
    Ready { status: String },
    /// The tree is not ready any more.
    Unready { status: String },
    /// The status has changed.
    Status(String),
    /// A reload begins. `Reloaded` ends it.
    Reloading,
    /// A reload is over, applied or refused.
    Reloaded { status: String },
    /// A stop begins, or its next stage does. It takes at most this long from now on.
    Stopping { status: String, within: Duration },
}

/// See the [module](self).
pub(super) struct Reporter {
    state: State,
    watchdog: Option<Watchdog>,
    /// When `RESTART_RESET=1` is due. `None` while the tree isn't ready, and once it was sent.
    reset: Option<Instant>,
    was_reset: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The first start isn't complete. A reload changes nothing about that.
    Starting,
    Ready,
    Reloading,
    Stopping {
        /// When the stop is over. `None` if that is never.
        until: Option<Instant>,
        /// When to ask for more time. `None` once the rest is covered.
        extend: Option<Instant>,
    },
}

struct Watchdog {
    interval: Duration,
    next: Instant,
}

impl Reporter {
    pub(super) fn new(watchdog: Option<Duration>, now: Instant) -> Self {
        let watchdog = watchdog.map(|interval| Watchdog { interval, next: now });
        Self { state: State::Starting, watchdog, reset: None, was_reset: false }
    }

    pub(super) fn on_notice(&mut self, notice: SystemdNotice, now: Instant) -> Option<Message> {
        let is_stopping = matches!(self.state, State::Stopping { .. });
        match notice {
            SystemdNotice::Status(status) => Some(Message::Status(status)),
            SystemdNotice::Stopping { status, within } => {
                let extend = self.stop(now, now.checked_add(within));
                self.reset = None;
                Some(if is_stopping {
                    Message::Status(status)
                } else {
                    Message::Stopping { status, extend }
                })
            }
            SystemdNotice::Ready { .. }
            | SystemdNotice::Unready { .. }
            | SystemdNotice::Reloading
            | SystemdNotice::Reloaded { .. }
                if is_stopping =>
            {
                None
            }
            SystemdNotice::Ready { status } => {
                if !self.was_reset {
                    self.reset = self.reset.or(now.checked_add(HEALTHY));
                }
                Some(self.ready_from(State::Starting, status))
            }
            SystemdNotice::Reloaded { status } => Some(self.ready_from(State::Reloading, status)),
            SystemdNotice::Unready { status } => {
                self.reset = None;
                Some(Message::Status(status))
            }
            // systemd waits for `READY=1` after this, which a start that isn't complete must not send.
            SystemdNotice::Reloading if self.state == State::Starting => {
                Some(Message::Status("starting: reloading the configuration".to_owned()))
            }
            SystemdNotice::Reloading => {
                self.state = State::Reloading;
                Some(Message::Reloading)
            }
        }
    }

    /// Reports that the unit is ready, if it is in this state. Otherwise only the status is new.
    fn ready_from(&mut self, from: State, status: String) -> Message {
        if self.state != from {
            return Message::Status(status);
        }
        self.state = State::Ready;
        Message::Ready { status }
    }

    /// Returns what is due. `alive` tells whether the loops turn.
    pub(super) fn on_time(&mut self, now: Instant, alive: impl FnOnce() -> bool) -> Vec<Message> {
        let mut due = Vec::new();
        let pings = self.watchdog.as_ref().is_some_and(|watchdog| watchdog.next <= now);
        let resets = self.reset.is_some_and(|reset| reset <= now);
        let alive = (pings || resets) && alive();
        if let Some(watchdog) = self.watchdog.as_mut().filter(|_| pings) {
            // While they don't turn, more often: they may turn again just in time.
            let wait = if alive { watchdog.interval / 2 } else { watchdog.interval / 8 };
            watchdog.next = now.checked_add(wait).unwrap_or(now + HEALTHY);
            due.extend(alive.then_some(Message::Watchdog));
        }
        if resets {
            self.was_reset = alive;
            self.reset = if alive { None } else { now.checked_add(HEALTHY) };
            due.extend(alive.then_some(Message::RestartReset));
        }
        if let State::Stopping { until, extend: Some(extend) } = self.state
            && extend <= now
        {
            due.push(Message::Extend(self.stop(now, until)));
        }
        due
    }

    /// Returns when [`on_time`](Self::on_time) has something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let extend = match self.state {
            State::Stopping { extend, .. } => extend,
            State::Starting | State::Ready | State::Reloading => None,
        };
        let watchdog = self.watchdog.as_ref().map(|watchdog| watchdog.next);
        [extend, watchdog, self.reset].into_iter().flatten().min()
    }

    /// Enters the state of stopping, and returns how much time to ask for now.
    fn stop(&mut self, now: Instant, until: Option<Instant>) -> Duration {
        let rest = until.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        let by = rest.saturating_add(MARGIN).min(EXTEND_BY);
        let extend = (rest > EXTEND_EVERY).then(|| now + EXTEND_EVERY);
        self.state = State::Stopping { until, extend };
        by
    }
}

/// How many bytes of a status are sent. systemd drops datagrams above 4 KiB.
const STATUS: usize = 1024;

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Ready { status: String },
    Reloading,
    Stopping { status: String, extend: Duration },
    Extend(Duration),
    Status(String),
    Watchdog,
    RestartReset,
}

impl Message {
    /// Returns the assignments. Those of a reload have the time of this call.
    pub(super) fn text(&self) -> String {
        let lines = match self {
            Self::Ready { status } => vec![NotifyState::Ready.to_string(), assignment(status)],
            Self::Reloading => {
                // systemd requires the time. Without it, the reload fails instead of this program.
                let now = NotifyState::monotonic_usec_now().map(|now| now.to_string());
                vec![NotifyState::Reloading.to_string(), now.unwrap_or_default()]
            }
            Self::Stopping { status, extend } => vec![
                NotifyState::Stopping.to_string(),
                assignment(status),
                Self::Extend(*extend).text(),
            ],
            Self::Extend(by) => {
                let micros = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
                vec![NotifyState::ExtendTimeoutUsec(micros).to_string()]
            }
            Self::Status(status) => vec![assignment(status)],
            Self::Watchdog => vec![NotifyState::Watchdog.to_string()],
            Self::RestartReset => vec![NotifyState::Custom("RESTART_RESET=1").to_string()],
        };
        lines.join("\n")
    }
}

fn assignment(status: &str) -> String {
    // A status may come from a child. A line break would begin another assignment.
    let line = status.replace(char::is_control, " ");
    NotifyState::Status(start_of(&line, STATUS)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Lets time pass up to a second, and returns the seconds and texts of what was sent.
    fn until(
        reporter: &mut Reporter,
        start: Instant,
        end: u64,
        alive: impl Fn(Duration) -> bool,
    ) -> Vec<(f64, String)> {
        let mut sent = Vec::new();
        while let Some(due) =
            reporter.next_deadline().filter(|due| *due <= start + SECOND * end as u32)
        {
            let at = due - start;
            for message in reporter.on_time(due, || alive(at)) {
                sent.push((at.as_secs_f64(), message.text()));
            }
        }
        sent
    }

    fn sent(expected: &[(f64, &str)]) -> Vec<(f64, String)> {
        expected.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
    }

    fn reloaded() -> SystemdNotice {
        SystemdNotice::Reloaded { status: "reloaded".to_owned() }
    }

    fn ready() -> SystemdNotice {
        SystemdNotice::Ready { status: "up".to_owned() }
    }

    #[test]
    fn the_watchdog_is_pinged_at_half_of_its_interval_while_the_loops_turn() {
        let start = Instant::now();
        let mut reporter = Reporter::new(Some(SECOND * 4), start);
        let hangs = |at: Duration| !(SECOND * 4..SECOND * 5).contains(&at);
        assert_eq!(
            until(&mut reporter, start, 8, hangs),
            // The ones at 4 s and 4.5 s are missing.
            sent(&[
                (0.0, "WATCHDOG=1"),
                (2.0, "WATCHDOG=1"),
                (5.0, "WATCHDOG=1"),
                (7.0, "WATCHDOG=1")
            ])
        );
        assert_eq!(until(&mut reporter, start, 60, |_| false), []);
    }

    #[test]
    fn without_a_watchdog_nothing_is_pinged() {
        let start = Instant::now();
        let reporter = Reporter::new(None, start);
        assert_eq!(reporter.next_deadline(), None);
    }

    #[test]
    fn a_stop_asks_for_time_until_it_is_over() {
        let start = Instant::now();
        let stopping =
            |secs| SystemdNotice::Stopping { status: "SIGTERM".to_owned(), within: SECOND * secs };
        let mut reporter = Reporter::new(None, start);
        reporter.on_notice(ready(), start);
        let first = reporter.on_notice(stopping(18), start).unwrap();
        assert_eq!(first.text(), "STOPPING=1\nSTATUS=SIGTERM\nEXTEND_TIMEOUT_USEC=15000000");
        assert_eq!(
            until(&mut reporter, start, 60, |_| true),
            sent(&[
                (5.0, "EXTEND_TIMEOUT_USEC=15000000"),
                (10.0, "EXTEND_TIMEOUT_USEC=13000000"),
                // Up to 5 s after its end, and nothing about being healthy.
                (15.0, "EXTEND_TIMEOUT_USEC=8000000"),
            ])
        );
        // The next stage: `STOPPING=1` was sent already.
        let end = start + SECOND * 20;
        let next = reporter.on_notice(stopping(6), end).unwrap();
        assert_eq!(next, Message::Status("SIGTERM".to_owned()));
        assert_eq!(
            until(&mut reporter, start, 60, |_| true),
            sent(&[(25.0, "EXTEND_TIMEOUT_USEC=6000000")])
        );
    }

    #[test]
    fn a_stop_without_a_deadline_asks_for_ever() {
        let start = Instant::now();
        let mut reporter = Reporter::new(None, start);
        let within = Duration::MAX;
        reporter.on_notice(SystemdNotice::Stopping { status: String::new(), within }, start);
        assert_eq!(until(&mut reporter, start, 3600, |_| true).len(), 720);
    }

    #[test]
    fn nothing_contradicts_a_stop() {
        let start = Instant::now();
        let mut reporter = Reporter::new(None, start);
        let within = SECOND;
        reporter.on_notice(SystemdNotice::Stopping { status: String::new(), within }, start);
        for notice in [
            ready(),
            SystemdNotice::Reloading,
            reloaded(),
            SystemdNotice::Unready { status: String::new() },
        ] {
            assert_eq!(reporter.on_notice(notice, start), None);
        }
        let status = reporter.on_notice(SystemdNotice::Status("2 left".to_owned()), start);
        assert_eq!(status, Some(Message::Status("2 left".to_owned())));
    }

    #[test]
    fn ready_is_said_once_and_after_each_reload() {
        let start = Instant::now();
        let mut reporter = Reporter::new(None, start);
        let texts = [ready(), ready(), SystemdNotice::Reloading, ready(), reloaded()]
            .map(|notice| reporter.on_notice(notice, start).unwrap().text());
        assert_eq!(texts[0], "READY=1\nSTATUS=up");
        assert_eq!(texts[1], "STATUS=up");
        assert!(texts[2].starts_with("RELOADING=1\n"));
        assert_eq!(texts[3], "STATUS=up", "the reload isn't over");
        assert_eq!(texts[4], "READY=1\nSTATUS=reloaded");
    }

    #[test]
    fn a_reload_during_the_first_start_does_not_report_the_unit_as_ready() {
        let start = Instant::now();
        let mut reporter = Reporter::new(None, start);
        let texts = [SystemdNotice::Reloading, reloaded(), ready()]
            .map(|notice| reporter.on_notice(notice, start).unwrap().text());
        let expected = [
            "STATUS=starting: reloading the configuration",
            "STATUS=reloaded",
            "READY=1\nSTATUS=up",
        ];
        assert_eq!(texts, expected);

        let mut reporter = Reporter::new(None, start);
        let texts = [SystemdNotice::Reloading, ready(), reloaded()]
            .map(|notice| reporter.on_notice(notice, start).unwrap().text());
        assert_eq!(texts[1..], ["READY=1\nSTATUS=up", "STATUS=reloaded"], "the start is complete");
    }

    #[test]
    fn a_tree_that_is_ready_for_30_s_resets_the_backoff_of_systemd_once() {
        let start = Instant::now();
        let mut reporter = Reporter::new(None, start);
        reporter.on_notice(ready(), start);
        assert_eq!(until(&mut reporter, start, 29, |_| true), []);
        reporter.on_notice(
            SystemdNotice::Unready { status: "db is down".to_owned() },
            start + SECOND * 29,
        );
        assert_eq!(until(&mut reporter, start, 39, |_| true), []);
        reporter.on_notice(ready(), start + SECOND * 40);
        // A status in between changes nothing.
        reporter.on_notice(ready(), start + SECOND * 50);
        let reset = sent(&[(70.0, "RESTART_RESET=1")]);
        assert_eq!(until(&mut reporter, start, 3600, |_| true), reset);
        reporter.on_notice(ready(), start + SECOND * 3600);
        assert_eq!(until(&mut reporter, start, 7200, |_| true), []);
    }

    #[test]
    fn each_state_has_its_assignments() {
        let status = || "3 of 3 active".to_owned();
        let extend = Duration::from_millis(1500);
        for (message, text) in [
            (Message::Ready { status: status() }, "READY=1\nSTATUS=3 of 3 active"),
            (
                Message::Stopping { status: status(), extend },
                "STOPPING=1\nSTATUS=3 of 3 active\nEXTEND_TIMEOUT_USEC=1500000",
            ),
            (Message::Extend(Duration::MAX), "EXTEND_TIMEOUT_USEC=4294967295"),
            (Message::Status(status()), "STATUS=3 of 3 active"),
            (Message::Watchdog, "WATCHDOG=1"),
            (Message::RestartReset, "RESTART_RESET=1"),
        ] {
            assert_eq!(message.text(), text);
        }
        let reloading = Message::Reloading.text();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_status_is_one_line_of_at_most_a_kibibyte() {
        let status = |text: &str| Message::Status(text.to_owned()).text();
        assert_eq!(status("a\nSTOPPING=1\r\0b"), "STATUS=a STOPPING=1  b");
        assert_eq!(status(&"x".repeat(5000)), format!("STATUS={}", "x".repeat(1024)));
        // Three bytes each.
        assert_eq!(status(&"€".repeat(500)), format!("STATUS={}", "€".repeat(341)));
    }
}
