//! A word, a number or a duration may be an expression, which may use the struct's data.

use std::time::Duration;

use verger::policy::Preset;
use verger::{Backoff, ChildSpec, RestartType, Shutdown, Strategy, Supervisor, supervisor, worker};

const GRACE: Duration = Duration::from_secs(9);
const WAIT: Backoff = Backoff::constant(GRACE);

fn restart() -> RestartType {
    RestartType::Transient
}

struct Settings {
    limit: u32,
    period: Duration,
    patience: Duration,
}

#[supervisor(
    preset = Preset::otp(),
    strategy = if self.together { Strategy::OneForAll } else { Strategy::OneForOne },
    max_restarts = self.settings.limit + 1,
    period = 2 * self.settings.period,
    backoff = WAIT.jitter(0.5),
    defaults(shutdown = self.settings.patience)
)]
struct App {
    #[child(restart = restart(), shutdown = GRACE, activation_timeout = self.settings.patience)]
    clock: ChildSpec,
    #[child(restart = RestartType::Temporary, shutdown = Shutdown::Infinity)]
    log: ChildSpec,
    together: bool,
    settings: Settings,
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |_| {})
}

pub(crate) fn main() {
    let second = Duration::from_secs(1);
    let settings = Settings { limit: 2, period: 5 * second, patience: 3 * second };
    let app = App { clock: idle("a"), log: idle("b"), together: true, settings };

    let clock = idle("clock").restart(restart()).shutdown(GRACE).activation_timeout(3 * second);
    let log = idle("log").restart(RestartType::Temporary).shutdown(Shutdown::Infinity);
    let by_builder = Supervisor::builder("app")
        .preset(Preset::otp())
        .strategy(Strategy::OneForAll)
        .restarts(3, 10 * second)
        .defaults(|child| child.backoff(WAIT.jitter(0.5)).shutdown(3 * second))
        .child(clock)
        .child(log);
    assert_eq!(format!("{:?}", app.builder()), format!("{by_builder:?}"));
}
