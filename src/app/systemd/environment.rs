//! What systemd tells a service in its environment.

use std::env;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::SYSTEMD_VARIABLES;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// `NOTIFY_SOCKET`.
    pub(super) socket: Option<OsString>,
    /// `WATCHDOG_USEC`.
    pub(super) watchdog_usec: Option<OsString>,
    /// `WATCHDOG_PID`.
    pub(super) watchdog_pid: Option<OsString>,
    /// The number of this process.
    pub(super) process: u32,
}

impl Environment {
    pub(super) fn read() -> Self {
        let [socket, watchdog_usec, watchdog_pid] = SYSTEMD_VARIABLES.map(env::var_os);
        Self { socket, watchdog_usec, watchdog_pid, process: std::process::id() }
    }

    /// Returns how often systemd expects a sign of life of this process, if it does.
    ///
    /// # Errors
    ///
    /// The name and the value of a variable that is no number.
    pub(super) fn watchdog(&self) -> Result<Option<Duration>, (&'static str, String)> {
        let Some(micros) = number::<u64>("WATCHDOG_USEC", self.watchdog_usec.as_deref())? else {
            return Ok(None);
        };
        // The watchdog may be meant for the parent of this process.
        let process = number::<u32>("WATCHDOG_PID", self.watchdog_pid.as_deref())?;
        let is_meant = process.is_none_or(|process| process == self.process);
        Ok((is_meant && micros > 0).then(|| Duration::from_micros(micros)))
    }
}

fn number<N: std::str::FromStr>(
    name: &'static str,
    value: Option<&OsStr>,
) -> Result<Option<N>, (&'static str, String)> {
    let Some(value) = value else { return Ok(None) };
    let parsed = value.to_str().and_then(|value| value.parse().ok());
    parsed.map(Some).ok_or_else(|| (name, value.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names_or_for_any() {
        let watchdog = |usec: Option<&str>, pid: Option<&str>| {
            let [watchdog_usec, watchdog_pid] = [usec, pid].map(|it| it.map(OsString::from));
            Environment { socket: None, watchdog_usec, watchdog_pid, process: 7 }.watchdog()
        };
        let ten = Ok(Some(Duration::from_secs(10)));
        assert_eq!(watchdog(Some("10000000"), Some("7")), ten);
        assert_eq!(watchdog(Some("10000000"), None), ten);
        assert_eq!(watchdog(Some("10000000"), Some("8")), Ok(None));
        assert_eq!(watchdog(None, Some("7")), Ok(None));
        assert_eq!(watchdog(Some("0"), None), Ok(None));
        assert_eq!(watchdog(Some("10s"), None), Err(("WATCHDOG_USEC", "10s".to_owned())));
        assert_eq!(watchdog(Some("1"), Some("")), Err(("WATCHDOG_PID", String::new())));
    }
}
